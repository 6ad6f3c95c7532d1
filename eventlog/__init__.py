"""An embedded event store: streams of events in one log, durable, ordered, with idempotent appends and followers.

>>> log = MemoryLog()
>>> log.append("orders-7", [NewEvent("Placed", b"...")], expect="none", key=b"request-1").positions
range(1, 2)
>>> [event.type for event in log.read("orders-7")]
['Placed']
"""

from eventlog.errors import *  # noqa: F403
from eventlog.log import EventLog
from eventlog.memory import MemoryLog
from eventlog.types import NewEvent

__all__ = ["EventLog", "MemoryLog", "NewEvent"]
