"""Measurements that anyone can repeat: `docpager bench`."""
