"""docpager."""
