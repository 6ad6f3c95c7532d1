"""Arguments and options that several commands share, and what they open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import click

import eventlog
from eventlog import EventLog, StoredEvent
from pace_actors.cli.screen import Bar, shown_key, shown_name
from pace_actors.domain.moments import moment
from pace_actors.errors import InvalidInput
from pace_actors.events import REGISTRY
from pace_actors.settings import clamped, named_in
from pace_actors.values import DEFAULT_USER, FACTS_PREFIX, THREAD_PREFIX, Microseconds, ThreadKey, UserKey, check_id

F = TypeVar("F", bound=Callable[..., Any])
NAMES_SHOWN = 8
TOLD_EVERY = 1024
"""After so many events a bar is told."""
REFUSALS: dict[type[OSError], str] = {
    FileNotFoundError: "look for a slip in the name, or for the folder that it is in",
    PermissionError: "change its owner or its mode, or name another place",
    IsADirectoryError: "name the files in it",
    FileExistsError: "name another file",
    NotADirectoryError: "a part of the path is a file",
}
"""What can be done about what the system refuses."""

directory = click.argument("directory", metavar="DIR", type=click.Path())
log_argument = click.argument("directory", metavar="LOG", type=click.Path())
"""A directory, a backup of one, or a file of exported lines."""
json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout and nothing else.")
at_option = click.option(
    "--at", metavar="PLACE", help="As it was at a position, a time, turn:NUMBER, id:TURN_ID or receipt:HASH."
)
owner_option = click.option("--user", help="Whose memory is meant; not needed where the log knows one user only.")
user_option = click.option("--user", help="Whose thread it is; not needed where only one has a thread of that name.")


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """What the system says about a file that was named becomes `InvalidInput`, with what can be done."""
    try:
        yield
    except OSError as error:
        advice = REFUSALS.get(type(error), "")
        said = (error.strerror or type(error).__name__).lower()
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        raise InvalidInput(f"{place}{said}{advice and '; '}{advice}", what=what) from error


@contextmanager
def reading(directory: str) -> Iterator[EventLog]:
    """The log in a directory, for reading only; another process may be writing it."""
    log = eventlog.open(directory, REGISTRY, readonly=True, create=False)
    try:
        yield log
    finally:
        log.close()


@contextmanager
def replaying(place: str) -> Iterator[EventLog]:
    """The log at a place, which may be an export too, for reading only."""
    from pace_actors.replay.sources import opened  # noqa: PLC0415 - loads what reads exports

    with Bar("reading the export") as bar, opened(place, on_progress=bar) as log:
        yield log


class _Watched:
    """A log that says how many events were read of it, to who asks it for no more than that."""

    def __init__(self, log: EventLog, tell: Callable[[int, int], None]) -> None:
        self._log, self._tell, self._read = log, tell, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def read(self, *arguments: Any, **more: Any) -> Iterator[StoredEvent]:
        """As the log's own."""
        return self._counted(self._log.read(*arguments, **more))

    def read_all(self, *arguments: Any, **more: Any) -> Iterator[StoredEvent]:
        """As the log's own."""
        return self._counted(self._log.read_all(*arguments, **more))

    def _counted(self, events: Iterator[StoredEvent]) -> Iterator[StoredEvent]:
        for event in events:
            self._read += 1
            if self._read % TOLD_EVERY == 0:
                self._tell(self._read, 0)
            yield event


@contextmanager
def watching(place: str, words: str) -> Iterator[EventLog]:
    """As `replaying`, with a bar for what is read, for commands whose questions tell nothing themselves."""
    with replaying(place) as log, Bar(words) as bar:
        yield cast("EventLog", _Watched(log, bar))


def settings_of_environment() -> dict[str, Any]:
    """Settings that `PACE_WINDOW` and its like name, put into their ranges; what had to be put right goes to stderr."""
    settings, words = clamped(named_in(os.environ))
    for said in words:
        click.echo(f"pace: {said}", err=True)
    return settings


def find_thread(log: EventLog, thread: str | None, user: str | None) -> ThreadKey:
    """The thread that is meant; without a name the only one. Raises `InvalidInput` with the names there are."""
    found = check_there(log, thread, user)
    if len(found) == 1:
        return found[0]
    if thread is None:
        raise InvalidInput(f"say which thread is meant; {_names(found)}", what="thread")
    preferred = ThreadKey(DEFAULT_USER, thread)
    if preferred in found:
        return preferred
    users = ", ".join(repr(key.user) for key in found[:NAMES_SHOWN])
    raise InvalidInput(f"several users have a thread {thread!r}: {users}; say which with --user", what="user")


def check_there(log: EventLog, thread: str | None, user: str | None) -> list[ThreadKey]:
    """The threads of that name, of that user, or both. Raises `InvalidInput` with the names there are, if none fits.

    Where nothing is asked for, nothing is refused.
    """
    if thread is not None and user is not None:
        wanted = ThreadKey.of(user, thread)
        if log.stream_version(wanted.stream):
            return [wanted]
    keys = threads_of(log)
    found = [key for key in keys if thread in (None, key.thread) and user in (None, key.user)]
    if found or (thread is None and (user is None or log.stream_version(UserKey.of(user).stream))):
        return found
    if thread is None:
        raise InvalidInput(f"there is no user {user!r} here; {_users(log, keys)}", what="user")
    words = f"there is no thread {thread!r}" if user is None else f"user {user!r} has no thread {thread!r}"
    raise InvalidInput(f"{words} here; {_names(keys)}", what="thread")


def find_owner(log: EventLog, user: str | None, *, new: bool = False, talks: bool = False) -> UserKey:
    """The user whose facts are meant; with `new` perhaps one whom the log does not know yet; with `talks` also threads.

    Raises `InvalidInput` with the names there are, where nobody or several are meant.
    """
    if user is not None:
        check_id("user", user)
        if new:
            return UserKey(user)
        check_there(log, None, user)
        return UserKey(user)
    found = owners_of(log)
    if talks or not found:
        found |= {key.user: None for key in threads_of(log)}
    if len(found) == 1:
        return UserKey(next(iter(found)))
    if DEFAULT_USER in found or (new and not found):
        return UserKey(DEFAULT_USER)
    if not found:
        raise InvalidInput("the log has no users yet", what="user")
    names = ", ".join(map(shown_name, list(found)[:NAMES_SHOWN]))
    raise InvalidInput(f"the log knows several users: {names}; say which with --user", what="user")


def owners_of(log: EventLog) -> dict[str, None]:
    """All users who have facts or notes, oldest first."""
    return {key.user: None for key in map(UserKey.of_stream, log.streams(FACTS_PREFIX)) if key is not None}


def threads_of(log: EventLog) -> list[ThreadKey]:
    """All threads in a log, oldest first."""
    return [key for key in map(ThreadKey.of_stream, log.streams(THREAD_PREFIX)) if key is not None]


def _users(log: EventLog, keys: list[ThreadKey]) -> str:
    users = list(owners_of(log) | {key.user: None for key in keys})
    if not users:
        return "the log has no users yet"
    more = f" and {len(users) - NAMES_SHOWN} more" if len(users) > NAMES_SHOWN else ""
    return f"there are {', '.join(map(shown_name, users[:NAMES_SHOWN]))}{more}"


def _names(keys: list[ThreadKey]) -> str:
    if not keys:
        return "the log has no threads yet"
    names = ", ".join(shown_key(key) for key in keys[:NAMES_SHOWN])
    return f"there are {names}" + (f" and {len(keys) - NAMES_SHOWN} more" if len(keys) > NAMES_SHOWN else "")


class When(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """An ISO 8601 time; without an offset in UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, with its zone."""
        if isinstance(value, datetime):
            return value
        try:
            said = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time like 2026-03-02 or 2026-03-02T08:15:00+01:00", param, ctx)
        return said if said.tzinfo is not None else said.replace(tzinfo=UTC)


class Moment(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.4
    """An ISO 8601 time, or the word `last`: the time of the thread's last turn."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Microseconds | str:
        """UTC microseconds, or `last`."""
        if value == "last" or isinstance(value, int):
            return "last" if value == "last" else int(value)
        try:
            return moment(datetime.fromisoformat(value))
        except ValueError:
            self.fail(f"{value!r} is no time like 2026-03-02T08:15:00+01:00, nor the word 'last'", param, ctx)
