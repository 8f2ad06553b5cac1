"""Published data sets: a file for each, what these files share, and their download."""
