"""Archival storage: what keeps documents, passages and vectors behind one protocol."""
