"""Figures, tables and the report page, computed from the store alone."""
