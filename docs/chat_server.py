"""A chat server with a memory: `python docs/chat_server.py ada.pace` serves it at http://127.0.0.1:8000 (see the page).

POST /chat/{user}/{thread} with {"text": "…"} gives {"reply": "…", "turn": 7}; GET /context/{user}/{thread} what a model
would see; POST /reset/{user}/{thread} starts afresh. `answer` stands in for a model, so that none is needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from eventlog import EventLogError
from pace_actors import AsyncPace, Context, PaceError
from pace_actors.async_pace import AsyncThread
from pace_actors.errors import InvalidInput


async def answer(context: Context) -> str:
    """What a model would say: how much of the conversation it was shown, and what was said last."""
    if not context.window:
        return "Hello, what can I do for you?"
    return f"I see {len(context.window)} turns; before this you said: {context.window[-1].user}"


def thread_of(request: Request) -> AsyncThread:
    """The conversation that the address names."""
    pace: AsyncPace = request.app.state.pace
    return pace.thread(request.path_params["thread"], user=request.path_params["user"])


async def text_of(request: Request) -> str:
    """What the user said. Raises `InvalidInput`."""
    try:
        text = json.loads(await request.body())["text"]
    except (ValueError, LookupError, TypeError):
        text = None
    if not isinstance(text, str):
        raise InvalidInput('the body is {"text": "…"}', what="body")
    return text


async def chat(request: Request) -> JSONResponse:
    """One turn: it is durable when the reply goes out, and no model of summaries was waited for."""
    thread, text = thread_of(request), await text_of(request)
    context = await thread.context(text)
    reply = await answer(context)
    recorded = await thread.record(text, reply, context=context)
    return JSONResponse({"reply": reply, "turn": recorded.turn})


async def show(request: Request) -> JSONResponse:
    """The messages that a model would be given."""
    context = await thread_of(request).context()
    return JSONResponse({"messages": context.messages(), "window": context.receipt.window})


async def reset(request: Request) -> JSONResponse:
    """End the session; history stays."""
    return JSONResponse({"changed": await thread_of(request).reset()})


async def refused(_: Request, error: Any) -> JSONResponse:
    """An error of the memory: its code, what to do, and whether to try again."""
    body = {"code": error.code, "message": str(error), "retryable": error.retryable}
    return JSONResponse(body, status_code=503 if error.retryable else 400)


def chat_server(place: str, **options: Any) -> Starlette:
    """The application. Its memory is opened and closed with it; `options` are those of `Pace.open`."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncPace.open(place, **options) as app.state.pace:
            yield

    routes = [
        Route("/chat/{user}/{thread}", chat, methods=["POST"]),
        Route("/context/{user}/{thread}", show),
        Route("/reset/{user}/{thread}", reset, methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={PaceError: refused, EventLogError: refused})


if __name__ == "__main__":
    uvicorn.run(chat_server(sys.argv[1] if len(sys.argv) > 1 else "chat.pace"), host="127.0.0.1", port=8000)
