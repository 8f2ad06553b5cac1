"""Readers of files by format, and files that a function reads."""
