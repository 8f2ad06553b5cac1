"""The numerics of continual learning. Knows nothing of Ray, Parquet or the command line."""
