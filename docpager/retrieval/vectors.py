"""What every stored vector and its embedder must be (I5), checked where they come in."""

from __future__ import annotations

import json

import numpy as np

from docpager.errors import ArchiveError, UserError
from docpager.protocols import Vectors
from docpager.types import EmbedderIdentity

_PROBE_SIMILARITY = 0.999
"""Cosine below which two probe vectors are not of one model; rounding keeps it above 0.9999."""


def unit_rows(vectors: Vectors, dimension: int) -> Vectors:
    """`vectors` as float32 of shape (n, dimension), each row scaled to norm 1.

    Raises:
        ArchiveError: a vector is not finite, is zero, or has another dimension.
    """
    rows = np.ascontiguousarray(vectors, np.float32)
    if rows.ndim != 2 or rows.shape[1] != dimension:
        raise ArchiveError(
            f"Vectors of shape {rows.shape} do not fit an archive of dimension {dimension}. "
            f"Check the embedder."
        )
    norms = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise ArchiveError("The embedder gave a vector that is not finite. Check the embedder.")
    if not (norms > 0).all():
        raise ArchiveError("The embedder gave a vector of zeros. Check the embedder.")
    return np.asarray(rows / norms, np.float32)


def unit_query(vector: Vectors, identity: EmbedderIdentity) -> Vectors:
    """A query's vector, of shape (d,), scaled to norm 1; a vector of zeros stays what it is.

    Raises:
        UserError: the archive's vectors have another dimension.
        ArchiveError: it is not finite.
    """
    query = np.asarray(vector, np.float32)
    if query.shape != (identity.dimension,):
        raise UserError(
            f"The query's vector has shape {query.shape}; the archive was made with the embedder "
            f"{identity.name} of dimension {identity.dimension}. {_set_to(identity)}."
        )
    norm = float(np.linalg.norm(query.astype(np.float64)))
    if not np.isfinite(norm):
        raise ArchiveError("The embedder gave a vector that is not finite. Check the embedder.")
    return query if norm == 0 else np.asarray(query / norm, np.float32)


def check_identity(stored: EmbedderIdentity, given: EmbedderIdentity) -> None:
    """Refuse an embedder that is not the archive's, by name and dimension.

    Raises:
        UserError: they differ; the message says how to go on.
    """
    if (stored.name, stored.dimension) != (given.name, given.dimension):
        raise UserError(
            f"The archive was made with the embedder {stored.name} ({stored.dimension} "
            f"dimensions), not with {given.name} ({given.dimension}). {_set_to(stored)}, or "
            "ingest into a new archive."
        )


def _set_to(identity: EmbedderIdentity) -> str:
    """Advice that holds for every command: not all of them have the option."""
    settings = "DOCPAGER_EMBEDDER, or `embedder` in docpager.toml"
    return f"Set the embedder to {identity.name} ({settings})"


def check_probe(stored: EmbedderIdentity, given: EmbedderIdentity) -> None:
    """Refuse an embedder of the same name whose vector of the probe sentence has changed.

    An identity without a probe passes.

    Raises:
        UserError: the probes are not of one model.
    """
    if not stored.probe or not given.probe:
        return
    first, second = np.asarray(stored.probe, np.float64), np.asarray(given.probe, np.float64)
    norms = np.linalg.norm(first) * np.linalg.norm(second)
    if len(first) != len(second) or not first @ second >= _PROBE_SIMILARITY * norms:
        raise UserError(
            f"The embedder {given.name} no longer gives the vectors that the archive was made "
            f"with: its model has changed. Install the earlier one, or ingest into a new archive."
        )


def identity_to_json(identity: EmbedderIdentity) -> str:
    """An identity as it is kept in an archive."""
    return json.dumps(
        {
            "name": identity.name,
            "dimension": identity.dimension,
            "normalised": identity.normalised,
            "probe": list(identity.probe),
        },
        ensure_ascii=False,
    )


def identity_from_json(text: str) -> EmbedderIdentity:
    """The identity that was kept as `text`."""
    kept = json.loads(text)
    return EmbedderIdentity(
        kept["name"], kept["dimension"], kept["normalised"], tuple(kept["probe"])
    )
