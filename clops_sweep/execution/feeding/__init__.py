"""The jobs of a sweep: which comes next, which are retried, and where their reports go."""
