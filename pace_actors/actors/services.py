"""What actors are given when they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from eventlog import EventLog
from pace_actors.actors.metrics import Metrics
from pace_actors.domain.redaction import RedactionPolicy
from pace_actors.domain.snapshots import EVERY
from pace_actors.messages import DeliverAnswer
from pace_actors.runtime.port import Address, Host
from pace_actors.values import ThreadKey

if TYPE_CHECKING:  # structlog is loaded when something is opened
    from structlog.typing import FilteringBoundLogger

TokenCounter = Callable[[str], int]


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The log, the host, and what the user chose at open."""

    log: EventLog
    host: Host
    logger: FilteringBoundLogger
    overrides: Mapping[str, Any]
    """Settings given at open; they differ from what a thread has stored until its next write."""
    opened_at: int
    """Head of the log at open: settings that a thread stored later are newer than the overrides."""
    policy: RedactionPolicy = "mask"
    snapshot_every: int = EVERY
    """Stream versions between two snapshots of a thread."""
    token_counter: TokenCounter | None = None
    metrics: Metrics
    deliver: Callable[[ThreadKey, DeliverAnswer], None]
    """Tell an answer to a thread's actor; wakes it."""
    sleep_after_s: float = 1800.0
    """Seconds without a message after which a thread's actor goes to sleep."""
    sleep: Callable[[ThreadKey, Address], bool]
    """Put a thread's actor to sleep, unless a message has arrived."""
