"""Augmentation: training frames are changed at random before each pass."""
