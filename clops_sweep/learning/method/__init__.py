"""The base of all methods: `Strategy`, with batches, memories and checkpoints."""
