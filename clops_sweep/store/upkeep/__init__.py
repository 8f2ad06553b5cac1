"""Maintenance of a whole store: compaction during a sweep, verification, and atomic rewrites of many parts."""
