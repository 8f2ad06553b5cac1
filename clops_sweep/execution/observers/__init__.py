"""Experiment trackers: which observers a launch requests, the thread that calls them, and the built-in ones."""
