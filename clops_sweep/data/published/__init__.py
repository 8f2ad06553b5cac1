"""Published data sets: a reader for each, what the readers share, and their download."""
