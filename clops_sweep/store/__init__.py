"""What is known: Parquet tables, written by workers, whole or not at all."""
