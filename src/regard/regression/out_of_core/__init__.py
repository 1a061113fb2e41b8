"""Data that need not be in memory: blocks of rows from Parquet folders and Dask, folded into states that merge."""
