"""Today's numbers, kept as data, and a comparison with them: `python -m tests.snapshot`."""
