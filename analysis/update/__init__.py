"""The update report: what changes, and for whom, if one model replaces another."""
