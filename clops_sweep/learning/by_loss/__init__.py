"""Methods that are written as a loss: `Strategy`, its batches, its memories and its checkpoints."""
