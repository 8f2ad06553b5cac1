"""The display of a running sweep."""
