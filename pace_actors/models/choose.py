"""From what a user gives as `model` and `embedder` to a summariser, perhaps an extractor, and an embedder."""

from __future__ import annotations

import contextlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import msgspec

from pace_actors.errors import InvalidInput
from pace_actors.models.breaker import Breaker, BreakingEmbedder, BreakingExtractor, BreakingSummariser
from pace_actors.models.port import Embedder, Extractor, Model, Summariser

LOCAL = "local"


class Models(msgspec.Struct, frozen=True):
    """Who writes summaries, and who finds facts besides the patterns. They may share connections; both are closed."""

    summariser: Summariser
    extractor: Extractor | None = None

    def close(self) -> None:
        """Close both, once where they are one object."""
        both: list[Model | None] = [self.summariser, self.extractor]
        with contextlib.ExitStack() as closing:
            for one in {id(one): one for one in both if one is not None}.values():
                closing.callback(one.close)


def models_from(
    model: str | Summariser | Models | None,
    *,
    model_name: str = "",
    api_key: str | None = None,
    allow_remote: bool = False,
    first_call_deadline_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    logger: Any = None,
) -> Models:
    """None: the extractive summariser. An address: the chat server there, for both, behind one breaker. `Models`: them.

    A summariser is itself, and the extractor too if it has `extract`. Only an address loads httpx.

    Raises `InvalidInput` for anything else, `ModelNotAllowed` for an address that is not on this machine unless
    `allow_remote`.
    """
    if model is None:
        from pace_actors.models.extractive import ExtractiveSummariser  # noqa: PLC0415 - loads sentence rules

        return Models(ExtractiveSummariser())
    if isinstance(model, Models):
        return model
    if isinstance(model, str):
        from pace_actors.models.chat import ChatSummariser  # noqa: PLC0415 - loads httpx
        from pace_actors.models.extract import ChatExtractor  # noqa: PLC0415
        from pace_actors.models.http import FIRST_CALL_DEADLINE_S, ChatClient  # noqa: PLC0415

        client = ChatClient(
            model,
            model=model_name,
            api_key=api_key,
            allow_remote=allow_remote,
            first_call_deadline_s=FIRST_CALL_DEADLINE_S if first_call_deadline_s is None else first_call_deadline_s,
            clock=clock,
            logger=logger,
        )
        breaker = Breaker()
        return Models(
            BreakingSummariser(ChatSummariser(client, clock=clock), breaker, clock, logger=logger),
            BreakingExtractor(ChatExtractor(client, clock=clock), breaker, clock, logger=logger),
        )
    if not isinstance(model, type) and all(hasattr(model, name) for name in ("name", "fold", "close")):
        extractor: Any = model if hasattr(model, "extract") else None
        return Models(model, extractor)
    raise InvalidInput(
        f"model is None, the address of a chat server, Models, or a summariser with name, fold and close; "
        f"not {type(model).__name__}",
        what="model",
    )


def summariser_from(model: str | Summariser | Models | None, **options: Any) -> Summariser:
    """The summariser of `models_from`. Raises as it does."""
    return models_from(model, **options).summariser


def embedder_from(
    embedder: str | Embedder | None,
    *,
    model_name: str = "",
    api_key: str | None = None,
    allow_remote: bool = False,
    first_call_deadline_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    logger: Any = None,
) -> Embedder | None:
    """None: no embedder. `local`: the small model of `pace-actors[embed]`. An address: the server there.

    An object with `name`, `embed`, `patience_s` and `close` is itself. Only an address loads httpx; numpy and the model
    are loaded when they are used.

    Raises `InvalidInput` for anything else, and where what it needs is not installed; `ModelNotAllowed` for an address
    that is not on this machine unless `allow_remote`.
    """
    if embedder is None:
        return None
    missing = [name for name in ("numpy",) if importlib.util.find_spec(name) is None]
    if embedder == LOCAL:
        from pace_actors.models.local import LocalEmbedder, missing_packages  # noqa: PLC0415 - reads a vocabulary

        missing += missing_packages()
        if not missing:
            return LocalEmbedder()
    if missing:
        raise InvalidInput(
            f"an embedder needs {', '.join(missing)}: install pace-actors[embed]", what="embedder", missing=missing
        )
    if isinstance(embedder, str) and "://" not in embedder:
        raise InvalidInput(
            f"embedder={embedder!r}: 'local', or an address like http://127.0.0.1:8080/v1", what="embedder"
        )
    if isinstance(embedder, str):
        from pace_actors.models.embed import EmbeddingClient  # noqa: PLC0415 - loads httpx
        from pace_actors.models.http import FIRST_CALL_DEADLINE_S  # noqa: PLC0415

        client = EmbeddingClient(
            embedder,
            model=model_name,
            api_key=api_key,
            allow_remote=allow_remote,
            first_call_deadline_s=FIRST_CALL_DEADLINE_S if first_call_deadline_s is None else first_call_deadline_s,
            clock=clock,
            logger=logger,
        )
        return BreakingEmbedder(client, Breaker(), clock, logger=logger)
    if not isinstance(embedder, type) and all(hasattr(embedder, name) for name in ("name", "embed", "patience_s")):
        return embedder
    raise InvalidInput(
        f"embedder is None, 'local', the address of a server of embeddings, or an object with name, embed, patience_s "
        f"and close; not {type(embedder).__name__}",
        what="embedder",
    )
