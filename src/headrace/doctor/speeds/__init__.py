"""Two loaders that deliver the same data, timed in turn: which is faster, and by how much."""
