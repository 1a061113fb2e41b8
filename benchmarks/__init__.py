"""Speed and memory against peers. Run with `python -m benchmarks`."""
