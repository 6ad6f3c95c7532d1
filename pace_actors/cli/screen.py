"""How things are shown: a console that knows pipes, texts without control characters, times, numbers, a bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pace_actors.cli.signs import json_for, shown_by
from pace_actors.domain.extracts import line_of
from pace_actors.values import Microseconds, ThreadKey

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

BAR_AFTER_S = 1.0
WIDTH_MAX = 110
"""Longer lines are hard to read, however wide the terminal is."""
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
_LINE_BREAKS = {code: 0x2400 + code for code in map(ord, "\n\t")}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD) | dict.fromkeys(
    (*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD
)


def console(*, stderr: bool = False) -> Console:
    """A console on stdout. Without colours in a pipe or with NO_COLOR; texts are never read as markup."""
    from pace_actors.cli.quiet_console import QuietConsole  # noqa: PLC0415 - loads rich

    colours = None if os.environ.get("NO_COLOR") else "auto"
    made = QuietConsole(stderr=stderr, highlight=False, markup=False, emoji=False, color_system=colours)  # type: ignore[arg-type]
    made.width = min(made.width, WIDTH_MAX)
    return made


def printable(text: str) -> str:
    """A text that can do nothing to a terminal: control characters and direction overrides become visible.

    It is laid out as it is shown: what the terminal does not have is an escape already.
    """
    return shown_by(text.translate(_CONTROLS), sys.stdout)


def on_one_line(text: str) -> str:
    """A whole text that can do nothing to a terminal, with its line breaks visible as well."""
    return printable(text.translate(_LINE_BREAKS))


def quoted(text: str, chars: int | None) -> str:
    """The beginning of a text, in quotes, on one line; without a number of characters all of it."""
    if not text:
        return "–"
    return f"“{on_one_line(text) if chars is None else printable(line_of(text, chars))}”"


def shown_name(name: str) -> str:
    """The name of a user or thread: quoted, with escapes, where it could not be read or copied otherwise.

    >>> print(shown_name("my kitchen"), shown_name("kitchen "))
    my kitchen 'kitchen '
    """
    clear = name.isprintable() and name == name.strip() and "/" not in name and name[:1] not in ("'", '"')
    return name if clear else repr(name)


def shown_key(key: ThreadKey) -> str:
    """`ada/kitchen`."""
    return f"{shown_name(key.user)}/{shown_name(key.thread)}"


def print_json(value: Any) -> None:
    """One JSON document on one line."""
    sys.stdout.write(json_for(sys.stdout, value) + "\n")


def shown_time(at: Microseconds) -> str:
    """`2026-03-02 07:15:00`, in UTC."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def iso_time(at: Microseconds) -> str:
    """`2026-03-02T07:15:00Z`: a time that `--now` takes again."""
    return datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown_bytes(number: int) -> str:
    """`812 B`, `1.4 MiB`."""
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:  # noqa: PLR2004 - a kibibyte
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


class Bar:
    """A progress bar on stderr, if somebody looks at it and it takes longer than a second."""

    def __init__(
        self, words: str, *, target: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._words = words
        self._target = target
        self._clock = clock
        self._since = clock()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        """How far it is; a total of 0 is not known."""
        if self._progress is None:
            if self._clock() - self._since < BAR_AFTER_S:
                return
            target = self._target or console(stderr=True)
            if not target.is_terminal:
                return
            self._progress, self._task = _begun(self._words, target)
        assert self._task is not None
        self._progress.update(self._task, completed=done, total=total or None)


def _begun(words: str, target: Console) -> tuple[Progress, TaskID]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - slow to load

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=target, transient=True)
    progress.start()
    return progress, progress.add_task(words, total=None)
