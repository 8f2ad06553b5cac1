"""Data sets during preparation, of this package or of a user's file, behind one interface."""
