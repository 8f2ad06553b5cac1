"""The store of results: Parquet tables that workers write atomically."""
