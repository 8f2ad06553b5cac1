"""Random augmentation of training frames."""
