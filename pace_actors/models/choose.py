"""From what a user gives as `model` to a summariser."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pace_actors.errors import InvalidInput
from pace_actors.models.breaker import Breaker, BreakingSummariser
from pace_actors.models.port import Summariser


def summariser_from(
    model: str | Summariser | None,
    *,
    model_name: str = "",
    api_key: str | None = None,
    allow_remote: bool = False,
    first_call_deadline_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    logger: Any = None,
) -> Summariser:
    """None: the extractive summariser. An address: the chat server there, behind a breaker. A summariser: itself.

    Only an address loads httpx. Raises `InvalidInput` for anything else, `ModelNotAllowed` for an address that is not
    on this machine unless `allow_remote`.
    """
    if model is None:
        from pace_actors.models.extractive import ExtractiveSummariser  # noqa: PLC0415 - loads sentence rules

        return ExtractiveSummariser()
    if isinstance(model, str):
        from pace_actors.models.chat import ChatSummariser  # noqa: PLC0415 - loads httpx
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
        return BreakingSummariser(ChatSummariser(client, clock=clock), Breaker(), clock, logger=logger)
    if not isinstance(model, type) and all(hasattr(model, name) for name in ("name", "fold", "close")):
        return model
    raise InvalidInput(
        f"model is None, the address of a chat server, or a summariser with name, fold and close; "
        f"not {type(model).__name__}",
        what="model",
    )
