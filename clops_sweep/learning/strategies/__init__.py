"""Continual-learning methods."""
