"""pace-actors: the memory of an assistant, in one process, on one directory.

>>> import tempfile
>>> from pace_actors import Pace
>>> with tempfile.TemporaryDirectory() as home, Pace.open(f"{home}/ada.pace") as pace:
...     kitchen = pace.thread("kitchen", user="ada")
...     recorded = kitchen.record("my mom is in the hospital", "I'm sorry to hear that.")  # durable when it returns
...     context = kitchen.context("how is she doing?")  # what the planner sees
>>> [message["role"] for message in context.messages(system="You are a kind assistant.")]
['system', 'user', 'assistant', 'user']
"""

from typing import TYPE_CHECKING, Any

from pace_actors.actors.eraser_actor import Erasure
from pace_actors.domain.context import Context, Receipt
from pace_actors.domain.known import Fact, PastFact
from pace_actors.errors import PaceError
from pace_actors.fact_verbs import Forgotten
from pace_actors.messages import NoteKept, Recorded, Stated
from pace_actors.pace import Pace, Stats
from pace_actors.settings import ThreadSettings
from pace_actors.thread import Thread
from pace_actors.values import ThreadKey

if TYPE_CHECKING:
    from pace_actors.async_pace import AsyncPace

__all__ = [
    "AsyncPace",
    "Context",
    "Erasure",
    "Fact",
    "Forgotten",
    "NoteKept",
    "Pace",
    "PaceError",
    "PastFact",
    "Receipt",
    "Recorded",
    "Stated",
    "Stats",
    "Thread",
    "ThreadKey",
    "ThreadSettings",
]


def __getattr__(name: str) -> Any:
    """`AsyncPace` is loaded, and asyncio with it, when it is asked for."""
    if name == "AsyncPace":
        from pace_actors.async_pace import AsyncPace  # noqa: PLC0415 - as said

        return AsyncPace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
