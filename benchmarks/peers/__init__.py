"""Comparison with Avalanche: the same methods with equal frames, network, optimiser and budget. See `__main__`."""
