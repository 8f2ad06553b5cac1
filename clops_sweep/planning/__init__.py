"""Which runs are pending, and what they will cost."""
