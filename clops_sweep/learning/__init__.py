"""The numerics of continual learning, independent of Ray, Parquet and the command line."""
