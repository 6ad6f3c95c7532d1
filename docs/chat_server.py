"""A chat server with a memory: `python docs/chat_server.py ada.pace` serves it on port 8000 (see the page)."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from eventlog import EventLogError
from pace_actors import AsyncPace, Context, PaceError
from pace_actors.async_pace import AsyncThread
from pace_actors.errors import InvalidInput, TurnConflict

OWED_MAX = 1000


async def answer(context: Context) -> str:
    """What a model would say: how much of the conversation it was shown, and what was said last."""
    said = [pair.user for pair in context.window]
    return f"I see {len(said)} turns; before this you said: {said[-1]}" if said else "Hello, what can I do for you?"


def thread_of(request: Request) -> AsyncThread:
    """The conversation that the address names."""
    pace: AsyncPace = request.app.state.pace
    return pace.thread(request.path_params["thread"], user=request.path_params["user"])


async def text_of(request: Request) -> str:
    """What the user said. Raises `InvalidInput`."""
    with suppress(ValueError, LookupError, TypeError):
        text = json.loads(await request.body())["text"]
        if isinstance(text, str):
            return text
    raise InvalidInput('the body is {"text": "…"}', what="body")


async def chat(request: Request) -> JSONResponse:
    """One turn, durable when the reply goes out; whoever tries again with its key gets the reply that he was owed."""
    thread, text, owed = thread_of(request), await text_of(request), request.app.state.owed
    key = thread.key, request.headers.get("idempotency-key") or str(uuid4())
    if key not in owed:
        context = await thread.context(text)
        owed.setdefault(key, (await answer(context), context))
    while len(owed) > OWED_MAX:
        del owed[next(iter(owed))]
    reply, context = owed[key]
    recorded = await thread.record(text, reply, turn_id=key[1], context=context)
    return JSONResponse({"reply": reply, "turn": recorded.turn})


async def show(request: Request) -> JSONResponse:
    """The messages that a model would be given."""
    context = await thread_of(request).context()
    return JSONResponse({"messages": context.messages(), "window": context.receipt.window})


async def reset(request: Request) -> JSONResponse:
    """End the session; history stays."""
    return JSONResponse({"changed": await thread_of(request).reset()})


async def refused(_: Request, error: Any) -> JSONResponse:
    """An error of the memory: `MailboxFull` says too much at once, `OutcomeUnknown` that the same key will find out."""
    status = 503 if error.retryable else 409 if isinstance(error, TurnConflict) else 400
    body = {"code": error.code, "message": str(error), "retryable": error.retryable}
    return JSONResponse(body, status, {"Retry-After": "1"} if error.retryable else {})


def chat_server(place: str, **options: Any) -> Starlette:
    """The application. Its memory is opened and closed with it; `options` are those of `Pace.open`."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.owed = {}
        async with AsyncPace.open(place, **options) as app.state.pace:
            yield  # at a stop the server ends the requests under way first; then what they recorded is written

    routes = [
        Route("/chat/{user}/{thread}", chat, methods=["POST"]),
        Route("/context/{user}/{thread}", show),
        Route("/reset/{user}/{thread}", reset, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={PaceError: refused, EventLogError: refused})


if __name__ == "__main__":
    uvicorn.run(chat_server(sys.argv[1] if len(sys.argv) > 1 else "chat.pace"), host="127.0.0.1", port=8000)
