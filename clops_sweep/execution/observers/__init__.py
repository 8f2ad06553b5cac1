"""Experiment trackers: requested observers, the thread that calls them, and built-in observers."""
