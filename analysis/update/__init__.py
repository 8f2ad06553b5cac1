"""The update report: what changes for which patients when one model replaces another."""
