"""What a study comes to: iterations and times combined, intervals, results, tables and pictures."""
