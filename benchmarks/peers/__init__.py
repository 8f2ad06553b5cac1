"""clops-sweep beside Avalanche: the same methods on equal frames, network, optimiser and budget. See `__main__`."""
