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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pace_actors.actors.eraser_actor import Erasure
    from pace_actors.async_pace import AsyncPace
    from pace_actors.domain.context import Context, Receipt
    from pace_actors.domain.known import Fact, PastFact
    from pace_actors.errors import PaceError
    from pace_actors.fact_verbs import Forgotten
    from pace_actors.messages import NoteKept, Recorded, Stated
    from pace_actors.pace import Pace, Stats
    from pace_actors.settings import ThreadSettings
    from pace_actors.thread import Thread
    from pace_actors.values import ThreadKey

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


_HOMES = {
    "AsyncPace": "async_pace",
    "Context": "domain.context",
    "Erasure": "actors.eraser_actor",
    "Fact": "domain.known",
    "Forgotten": "fact_verbs",
    "NoteKept": "messages",
    "Pace": "pace",
    "PaceError": "errors",
    "PastFact": "domain.known",
    "Receipt": "domain.context",
    "Recorded": "messages",
    "Stated": "messages",
    "Stats": "pace",
    "Thread": "thread",
    "ThreadKey": "values",
    "ThreadSettings": "settings",
}
"""Where each name is at home: loaded when it is asked for, so that what only reads logs loads no actors."""


def __getattr__(name: str) -> Any:
    """One of the names above."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
