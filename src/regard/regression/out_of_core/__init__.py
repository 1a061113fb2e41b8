"""Data larger than memory: chunks of Parquet files, memory maps and Dask collections, as partial states that merge."""
