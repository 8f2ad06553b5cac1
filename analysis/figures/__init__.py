"""Figures, one per module."""
