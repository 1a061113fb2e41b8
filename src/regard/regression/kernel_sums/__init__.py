"""Kernel averages of a sample at some queries: three ways, one answer, and a bound on what each loses."""
