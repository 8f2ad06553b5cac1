"""Data sets as frames: declarations, splits by patient and the scenarios built on them."""
