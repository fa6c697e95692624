"""Measurements that users run (`docpager bench`); those for developers are in `benchmarks/`."""
