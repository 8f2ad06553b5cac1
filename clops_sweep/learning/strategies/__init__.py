"""Strategies: what is stored, what is replayed, and how a step is taken."""
