"""Files that mark the folder of a report."""

MARKER = ".clops-sweep-report"
"""An empty file in the folder of a report, which allows the next report to replace it."""

DRAWN_FROM = ".drawn-from"
"""A file with a digest of everything that the report of a launch was drawn from; a new report removes it."""
