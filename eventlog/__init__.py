"""An embedded event store: streams of events in one log, durable, ordered, with idempotent appends and followers.

>>> log = MemoryLog()  # or open("some/directory")
>>> log.append("orders-7", [NewEvent("Placed", b"...")], expect="none", key=b"request-1").positions
range(1, 2)
>>> [event.type for event in log.read("orders-7")]
['Placed']
"""

from eventlog.errors import (
    BadRecord,
    ChainBroken,
    CheckpointBeyondHead,
    CheckpointConflict,
    CloseTimeout,
    CommitFailed,
    DamagedLog,
    DiskFull,
    EventLogError,
    InvalidArgument,
    KeyReused,
    LogClosed,
    LogInUse,
    MapFull,
    NetworkFileSystem,
    NewerFormat,
    NotALog,
    NoUpcaster,
    OpenedInAnotherProcess,
    OptionsDiffer,
    OutcomeUnknown,
    Overloaded,
    PermissionDenied,
    ReadOnlyLog,
    TooLarge,
    TooManyReaders,
    UnknownType,
    WrongExpectedVersion,
)
from eventlog.follow import Follower
from eventlog.lmdb import LmdbLog
from eventlog.lmdb import open_log as open  # noqa: A004 - `eventlog.open(path)` reads best
from eventlog.log import Done, EventLog, LogStats, OnBad
from eventlog.memory import MemoryLog
from eventlog.types import (
    Appended,
    AscendingKey,
    Chain,
    Code,
    Expect,
    Found,
    NewEvent,
    Registry,
    Snapshot,
    StoredEvent,
    Text,
    Upcaster,
)

__all__ = [
    "Appended",
    "AscendingKey",
    "BadRecord",
    "Chain",
    "ChainBroken",
    "CheckpointBeyondHead",
    "CheckpointConflict",
    "CloseTimeout",
    "Code",
    "CommitFailed",
    "DamagedLog",
    "DiskFull",
    "Done",
    "EventLog",
    "EventLogError",
    "Expect",
    "Follower",
    "Found",
    "InvalidArgument",
    "KeyReused",
    "LmdbLog",
    "LogClosed",
    "LogInUse",
    "LogStats",
    "MapFull",
    "MemoryLog",
    "NetworkFileSystem",
    "NewEvent",
    "NewerFormat",
    "NoUpcaster",
    "NotALog",
    "OnBad",
    "OpenedInAnotherProcess",
    "OptionsDiffer",
    "OutcomeUnknown",
    "Overloaded",
    "PermissionDenied",
    "ReadOnlyLog",
    "Registry",
    "Snapshot",
    "StoredEvent",
    "Text",
    "TooLarge",
    "TooManyReaders",
    "UnknownType",
    "Upcaster",
    "WrongExpectedVersion",
    "open",
]
