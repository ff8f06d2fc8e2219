"""Functions of PyTorch that compute element by element, or along rows, computed in a design's arithmetic."""
