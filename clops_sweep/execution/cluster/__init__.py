"""The Ray cluster of a sweep and its worker processes."""
