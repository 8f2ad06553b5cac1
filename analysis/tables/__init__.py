"""Comparison and strategy tables, and LaTeX."""
