"""Replay: the buffer, what is stored in it, and what is acquired from it."""
