"""Vocabularies and weights load within the first examples: no deadline for one example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("models", deadline=None)
settings.load_profile("models")
