"""Formats of files, checksums and resampling."""
