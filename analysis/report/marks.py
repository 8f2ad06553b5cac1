"""Files that mark the folder of a report."""

MARKER = ".clops-sweep-report"
"""An empty file in the folder of a report, which allows the next report to replace it."""

DRAWN_FROM = ".drawn-from"
"""A file with a digest of everything that the report of a launch was drawn from; a new report removes it."""

OF_FILES = ".of-files"
"""A file with places and digests of the search-space files that a report is of; the report of other files does not
replace it, unless the user names the folder."""
