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
from docpager.wiring.embedders import (
    GivenModels,
    check_same_model,
    matching_embedder,
    probed_identity,
)
from docpager.wiring.endpoints import (
    EMBEDDED,
    is_embedded,
    make_counter,
    make_endpoint,
    price_of,
    required_price,
)
from docpager.wiring.ingests import IngestProgress, RecognitionProgress, ingest_into, worker_count
from docpager.wiring.questions import Say, drop_runs, load_ahead, open_runner, silent
from docpager.wiring.runner import QuestionRunner, SharedLimits, question_bounds
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
    "QuestionRunner",
    "RecognitionProgress",
    "Say",
    "SharedLimits",
    "check_same_model",
    "drop_runs",
    "estimate_batch",
    "greet",
    "in_mode",
    "ingest_into",
    "is_embedded",
    "known_window",
    "load_ahead",
    "make_counter",
    "make_endpoint",
    "matching_embedder",
    "model_name",
    "obtain_weights",
    "open_model",
    "open_runner",
    "open_store",
    "price_of",
    "probed_identity",
    "question_bounds",
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
