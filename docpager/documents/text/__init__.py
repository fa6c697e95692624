"""Text in any charset, delimited and structured data."""
