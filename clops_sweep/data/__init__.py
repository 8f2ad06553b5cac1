"""Data sets as frames: declarations, splits by patient, and scenarios."""
