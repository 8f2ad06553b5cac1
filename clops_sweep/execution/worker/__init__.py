"""Execution of jobs in a worker process."""
