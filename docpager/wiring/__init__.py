"""Config to concrete objects: the only folder that knows every class.

Everything heavy is imported where it is used, so that a command loads what it needs and no more.
"""

from docpager.wiring.batches import BatchFiles, BatchOptions, estimate_batch, run_batch
from docpager.wiring.chats import (
    UNKNOWN_WINDOW,
    OpenModel,
    greet,
    in_mode,
    known_window,
    model_name,
    open_model,
)
from docpager.wiring.embedders import check_same_model, matching_embedder, probed_identity
from docpager.wiring.endpoints import (
    EMBEDDED,
    is_embedded,
    make_counter,
    make_endpoint,
    price_of,
    required_price,
)
from docpager.wiring.given import GivenModels
from docpager.wiring.ingests import IngestProgress, RecognitionProgress, ingest_into, worker_count
from docpager.wiring.questions import Say, silent
from docpager.wiring.resources import Resources
from docpager.wiring.stores import (
    EMPTY,
    open_store,
    remove_documents,
    run_folders,
    side_folder,
)
from docpager.wiring.weights import obtain_weights, remove_weights, take_inventory

__all__ = [
    "EMBEDDED",
    "EMPTY",
    "UNKNOWN_WINDOW",
    "BatchFiles",
    "BatchOptions",
    "GivenModels",
    "IngestProgress",
    "OpenModel",
    "RecognitionProgress",
    "Resources",
    "Say",
    "check_same_model",
    "estimate_batch",
    "greet",
    "in_mode",
    "ingest_into",
    "is_embedded",
    "known_window",
    "make_counter",
    "make_endpoint",
    "matching_embedder",
    "model_name",
    "obtain_weights",
    "open_model",
    "open_store",
    "price_of",
    "probed_identity",
    "remove_documents",
    "remove_weights",
    "required_price",
    "run_batch",
    "run_folders",
    "side_folder",
    "silent",
    "take_inventory",
    "worker_count",
]
