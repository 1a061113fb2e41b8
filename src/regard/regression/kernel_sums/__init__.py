"""Kernel averages of a sample at queries: three algorithms, one result, and an error bound for each query."""
