"""What an actor sees of the world. Two hosts stand behind it: threads of pykka, and a seeded scheduler for tests.

An actor handles one message at a time. It never blocks, never shares state, and never raises on purpose: after any
exception its host tells the asker, throws the actor's state away and has it rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from pace_actors.messages import Bound, Message
from pace_actors.values import Microseconds

WorkKind = Literal["wait", "compute", "disk"]
"""What a slow job mostly does: wait for a model, compute in Python (one at a time: the interpreter has room for no
more, and an event loop beside it waits for each), or write a file."""


class Reply(Protocol):
    """The one answer to an ask. Giving a second one changes nothing."""

    def give(self, value: Any) -> None:
        """Answer."""
        ...

    def fail(self, error: BaseException) -> None:
        """Answer with an error."""
        ...


class Answer(Protocol):
    """The asker's side of a reply."""

    @property
    def is_kept(self) -> bool:
        """Whether there is an answer."""
        ...

    def wait(self, timeout_s: float) -> Any:
        """The answer, or its error. Raises `TimeoutError` when the time is over."""
        ...

    def then(self, callback: Callable[[Any, BaseException | None], None]) -> None:
        """Call back with (value, None) or (None, error), at once if it is there. The callback must not block."""
        ...


class Address(Protocol):
    """Where messages to an actor go."""

    @property
    def name(self) -> str:
        """What log lines and errors call the actor."""
        ...

    def tell(self, message: Message) -> None:
        """Put a message into the inbox. Never blocks, never raises; a stopped actor's are counted as dead letters."""
        ...

    def ask(self, message: Message) -> Answer:
        """The same, for an answer. Every ask ends: a reply, a typed error, or the asker's deadline."""
        ...


class Timer(Protocol):
    """A message that will come."""

    def cancel(self) -> None:
        """Do not send it, if it was not sent yet."""
        ...


class Actor(Protocol):
    """A rule-follower with a mailbox."""

    def start(self, me: Address) -> None:
        """(Re)build everything from the log. Called first, and again after any exception."""
        ...

    def receive(self, message: Message, reply: Reply | None) -> None:
        """Handle one message."""
        ...

    def stop(self) -> None:
        """The last call. Release timers and subscriptions; no message follows."""
        ...

    def failed(self, error: BaseException) -> None:
        """`receive` raised: give up what was promised to others. `start` follows."""
        ...


class Host(Protocol):
    """Runs actors, timers and slow work."""

    def now(self) -> Microseconds:
        """Wall clock, UTC microseconds. Data, never order."""
        ...

    def monotonic_s(self) -> float:
        """A clock for durations, in seconds."""
        ...

    def new_id(self) -> bytes:
        """16 bytes that are unique and ascend (UUIDv7)."""
        ...

    def spawn(self, actor: Actor, name: str, bound: Bound = ()) -> Address:
        """Start an actor. What is `bound` stands on the log lines of its start."""
        ...

    def retire(self, address: Address) -> bool:
        """Stop an actor if its inbox is empty; False, and nothing done, if it is not."""
        ...

    def after(self, delay_s: float, address: Address, message: Message) -> Timer:
        """Tell a message later."""
        ...

    def work(self, job: Callable[[], Message], address: Address, kind: WorkKind = "wait") -> Callable[[], None]:
        """Run a slow job, which never raises, on a worker and tell its result. Kinds do not wait for one another.

        Returns the way to give it up: its worker is replaced, and its result still comes if it ever does.
        """
        ...
