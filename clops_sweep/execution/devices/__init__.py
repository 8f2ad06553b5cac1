"""CPU or GPU: what a network gains from a GPU, and what a launch computes on."""
