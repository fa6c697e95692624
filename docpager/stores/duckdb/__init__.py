"""The store in one DuckDB file; the only place that knows DuckDB."""
