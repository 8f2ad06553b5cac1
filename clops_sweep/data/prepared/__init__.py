"""Prepared frames: their folder, whether they still match their source, and their normalization."""
