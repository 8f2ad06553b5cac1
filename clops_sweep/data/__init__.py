"""Data sets as frames: readers, splits by patient and the scenarios built on them."""
