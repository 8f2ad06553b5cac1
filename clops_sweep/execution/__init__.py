"""Execution of runs: Ray, Tune, workers and the live display."""
