"""pace-actors: the memory of an assistant, in one process, on one directory.

>>> from pace_actors import Pace                                             # doctest: +SKIP
>>> with Pace.open("ada.pace") as pace:                                      # doctest: +SKIP
...     kitchen = pace.thread("kitchen", user="ada")
...     kitchen.record("my mom is in the hospital", "I'm sorry to hear that.")
...     kitchen.context("how is she doing?").messages(system="You are ...")
"""

from pace_actors.domain.context import Context, Receipt
from pace_actors.errors import PaceError
from pace_actors.messages import Recorded
from pace_actors.pace import Pace, Stats
from pace_actors.settings import ThreadSettings
from pace_actors.thread import Thread
from pace_actors.values import ThreadKey

__all__ = [
    "Context",
    "Pace",
    "PaceError",
    "Receipt",
    "Recorded",
    "Stats",
    "Thread",
    "ThreadKey",
    "ThreadSettings",
]
