"""What is left, and what it will cost."""
