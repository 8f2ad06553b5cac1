"""Frozen encoders: from the frames of a data set to features."""
