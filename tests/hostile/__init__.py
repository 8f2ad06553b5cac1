"""Bad inputs, hundreds of them, and whether each is answered: `python -m tests.hostile`."""
