"""Methods defined by a loss: `Strategy`, with batches, memories and checkpoints."""
