"""What a worker process does with a job."""
