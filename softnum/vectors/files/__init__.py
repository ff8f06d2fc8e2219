"""Files of vectors: dialects, their layouts, headers, compression."""
