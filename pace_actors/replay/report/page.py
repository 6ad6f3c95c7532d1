"""The page of a report: template, style and script of this folder, with the data of a log between them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

import msgspec

from eventlog import EventLog
from pace_actors.domain.fold import Batch
from pace_actors.domain.text import repair
from pace_actors.errors import InvalidInput
from pace_actors.replay.fold import PROGRESS_BATCHES, Progress
from pace_actors.replay.report.data import thread_part, user_part
from pace_actors.replay.why.chain import ANSWER_REFUSED, CANDIDATE_REFUSED
from pace_actors.values import ThreadKey, UserKey

THREADS_MAX: Final = 1_000
EVENTS_MAX: Final = 100_000
"""Of the threads and users that are shown. A browser opens so many in seconds; of more, one thread is looked at."""
MARK: Final = '<meta name="generator" content="pace inspect">'
"""By it a report is known as one."""
SCRIPTS: Final = ("model.js", "words.js", "dom.js", "line.js", "panes.js", "page.js")
"""One script of the page, in this order."""
_ESCAPES: Final = {
    ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029",
}  # fmt: skip


def report(
    log: EventLog, keys: Sequence[ThreadKey], *, title: str = "", on_progress: Progress | None = None
) -> Iterator[str]:
    """A page about these threads and what is known of their users, piece by piece.

    Memory grows with the largest thread and its texts. The page holds every word of them that was not erased. It may
    run its own script only, and may fetch nothing. Raises `InvalidInput` before the first piece for more threads or
    events than a page can hold (`THREADS_MAX`, `EVENTS_MAX`), or for none at all.
    """
    users = list(dict.fromkeys(UserKey(key.user) for key in keys))
    count = check_size(log, keys, users)
    return _pieces(log, keys, users, repair(title)[0], _Told(on_progress, count))


def check_size(log: EventLog, keys: Sequence[ThreadKey], users: Sequence[UserKey]) -> int:
    """How many events a report holds. Raises `InvalidInput` where that is too many for one page."""
    advice = "name one with --thread, or a user with --user"
    if not keys:
        raise InvalidInput("the log has no threads yet", what="thread")
    if len(keys) > THREADS_MAX:
        words = f"{len(keys):,} threads; a report holds {THREADS_MAX:,}: {advice}"
        raise InvalidInput(words, what="thread", limit=THREADS_MAX)
    count = sum(
        log.stream_version(stream) for stream in [*(key.stream for key in keys), *(user.stream for user in users)]
    )
    if count > EVENTS_MAX:
        words = f"{count:,} events; a report holds {EVENTS_MAX:,}: {advice}"
        raise InvalidInput(words, what="thread", limit=EVENTS_MAX)
    return count


class _Told:
    """Says how many events have gone in, of all."""

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = self._batches = 0

    def __call__(self, batch: Batch) -> None:
        self._done += 1 + len(batch.decided)
        self._batches += 1
        if self._on_progress is not None and self._batches % PROGRESS_BATCHES == 0:
            self._on_progress(min(self._done, self._total), self._total)

    def end(self) -> None:
        """Everything is in."""
        if self._on_progress is not None:
            self._on_progress(self._total, self._total)


def _pieces(
    log: EventLog, keys: Sequence[ThreadKey], users: Sequence[UserKey], title: str, told: _Told
) -> Iterator[str]:
    head = log.head()
    style, script = part("page.css"), "\n".join(part(name) for name in SCRIPTS)
    values = {
        "mark": MARK,
        "title": escape(title or "a log"),
        "style": style,
        "script": script,
        "style-hash": digest(style),
        "script-hash": digest(script),
    }
    before, after = (_filled(half, values) for half in part("page.html").split("{{data}}"))
    yield before
    for number, user in enumerate(users):
        yield block(f"user-{number}", user_part(log, user, head, told))
    places = {user.user: number for number, user in enumerate(users)}
    index = []
    for number, key in enumerate(keys):
        made = thread_part(log, key, head, told)
        yield block(f"thread-{number}", made)
        index.append(_entry(key, places[key.user], made))
    told.end()
    reasons = {"answers": ANSWER_REFUSED, "candidates": CANDIDATE_REFUSED}
    yield block("index", {"title": title, "head": head, "threads": index, "reasons": reasons})
    yield after


def _filled(template: str, values: dict[str, str]) -> str:
    """A template with its places filled, in one pass: what a value holds is no place."""
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda place: values[place[1]], template)


def _entry(key: ThreadKey, user: int, made: dict[str, Any]) -> dict[str, Any]:
    return {
        "user": key.user,
        "thread": key.thread,
        "facts": user,
        "turns": len(made["line"]["turns"]["rows"]),
        "steps": len(made["steps"]),
    }


def block(name: str, data: dict[str, Any]) -> str:
    """Data that no reader of HTML takes for anything else, whatever is in it."""
    text = msgspec.json.encode(data).decode().translate(_ESCAPES)
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def beginning() -> bytes:
    """The first bytes of every report."""
    return (part("page.html").partition("{{mark}}")[0] + MARK).encode()


def digest(text: str) -> str:
    """What a content security policy knows a script or a style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def part(name: str) -> str:
    """A file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
