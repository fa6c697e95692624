"""The embedded model: llama.cpp in this process, behind an OpenAI-compatible loopback server."""

from __future__ import annotations

import http.client
import os
import secrets
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from docpager.errors import ModelError, UserError
from docpager.protocols import Clock

if TYPE_CHECKING:
    from xllamacpp import Server

_SILENT = -1
"""llama.cpp's log threshold below its errors: what it says is not for a person to act on."""
_POLL_SECONDS = 0.1


class EmbeddedServer:
    """Serves one GGUF file on a random loopback port, from the first use of `base_url` to `close`.

    It has one slot, so each call keeps what the one before left in the prompt cache, and only the
    part of a prompt that changed is read again. The key in `api_key` keeps other users of the
    machine, and web pages, out.

    Args:
        weights: A GGUF file, already checked.
        context_window: Tokens of prompt and reply together.
        clock: Only its `sleep` and `monotonic` are used, while the server loads.
        threads: Threads that compute; by default the physical cores this process may use.
    """

    def __init__(
        self,
        weights: Path,
        clock: Clock,
        context_window: int = 8192,
        threads: int | None = None,
    ) -> None:
        self._weights = weights
        self._clock = clock
        self._context_window = context_window
        self._threads = threads if threads is not None else usable_cores()
        self._server: Server | None = None
        self._starting = threading.Lock()
        self.api_key = secrets.token_urlsafe(24)

    @property
    def base_url(self) -> str:
        """The OpenAI-compatible endpoint, `http://127.0.0.1:PORT/v1`; starts the server if need be.

        Raises:
            UserError: the extra `local` or the file is missing.
            ModelError: llama.cpp cannot load the file.
        """
        return f"{self._started().listening_address}/v1"

    def wait_until_ready(self, timeout: float = 120.0) -> None:
        """Return once the model is loaded and answers.

        Raises:
            ModelError: it is not ready after `timeout` seconds.
            UserError: the extra `local` or the file is missing.
        """
        address = urlsplit(self.base_url)
        deadline = self._clock.monotonic() + timeout
        while not _is_healthy(address.hostname or "127.0.0.1", address.port or 80):
            if self._clock.monotonic() >= deadline:
                raise ModelError(
                    f"The embedded model was not ready after {timeout:.0f} s. "
                    "Close other programs that use the processor, and try again."
                )
            self._clock.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """Stop the server and free its memory; a later use of `base_url` starts it anew."""
        with self._starting:
            self._server = None  # its destructor ends the server's threads and waits for them

    def __enter__(self) -> EmbeddedServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self) -> Server:
        with self._starting:
            if self._server is None:
                self._server = _start(
                    self._weights, self._context_window, self._threads, self.api_key
                )
            return self._server


def usable_cores() -> int:
    """Physical cores that this process may use; at least 1.

    Two threads on one core slow llama.cpp down, and so do more threads than a container's share.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if allowed is None:
        return max(1, os.cpu_count() or 1)
    cores = {_siblings(cpu) for cpu in allowed}
    return max(1, min(len(cores), _container_share() or len(cores)))


def _siblings(cpu: int) -> str:
    """What names the physical core of a logical one."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return str(cpu)  # the system does not say: every logical one counts


def _container_share() -> int | None:
    """Whole processors that the container may use at once; None without such a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None  # no control group here, or its quota is "max"


def _start(weights: Path, context_window: int, threads: int, api_key: str) -> Server:
    """The seam to xllamacpp."""
    try:
        from xllamacpp import CommonParams, Server
    except ImportError as error:
        raise UserError(
            'The embedded model needs an extra. Run `pip install "docpager[local]"`, '
            "or name an endpoint with --base-url."
        ) from error
    if not weights.is_file():
        # llama.cpp would only say so in its log, which is silenced.
        raise UserError(f"{weights} is not there. Run `docpager model` to see how to obtain it.")
    params = CommonParams()
    params.model.path = str(weights)
    params.n_ctx = context_window
    params.n_parallel = 1
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [api_key]
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = "http://127.0.0.1"
    params.n_gpu_layers = 0
    params.fit_params = False
    params.warmup = False
    # Repacked weights would be a private copy of 0.6 GB in each process for no more speed at
    # reading; as they are in the file, the system maps them once for all processes.
    params.no_extra_bufts = True
    params.cache_prompt = True
    params.cache_ram_mib = 256
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.verbosity = _SILENT
    try:
        return Server(params)
    except RuntimeError as error:
        raise ModelError(
            f"llama.cpp cannot load {weights}. Check the file with `docpager model`, "
            "and that enough memory is free."
        ) from error


def _is_healthy(host: str, port: int) -> bool:
    """Whether the server says that its model is loaded; never through a proxy."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False  # it does not listen yet
    finally:
        connection.close()
