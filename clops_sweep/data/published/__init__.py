"""Published data sets: a module for each, shared code, and downloads."""
