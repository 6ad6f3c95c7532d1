"""What went wrong: one line on stderr and an exit code. `pace_actors.errors.exit_code` is the one table behind it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from eventlog import BadRecord, EventLogError, MapFull, UnknownType
from pace_actors.cli.signs import json_for
from pace_actors.domain.text import repair
from pace_actors.errors import EXIT_CODES, PaceError, exit_code

INTERRUPTED = 130
READER_GONE = 141
USAGE = 2

MEANINGS: dict[int, str] = {
    0: "done",
    1: "a check found something wrong, or something went wrong that has no code of its own",
    2: "it cannot be done like this: an argument, a setting or a file is not possible",
    3: "no fact is what was named, or a line of an import file cannot be read; the lines before it are stored",
    4: "it contradicts what is stored; nothing was changed",
    5: "the log or an actor could not do it now; try again",
    6: "another process has the log open for writing",
    7: "there is no log at that place, or none that can be read",
    INTERRUPTED: "interrupted from the keyboard; what was acknowledged is stored",
    READER_GONE: "whoever read the output went away",
}


ADVICE: dict[type[EventLogError], str] = {
    BadRecord: "Keep the directory as evidence and restore a backup; `pace log DIR --after {position}` lists what lies "
    "behind it",
    UnknownType: "Another program, or a newer version of this one, wrote it: read it with that",
    MapFull: "Import what is left into another directory",
}
"""What can be done on the command line, where the error's own advice is for a program."""


class Row(NamedTuple):
    """One line of the table of exit codes."""

    code: int
    means: str
    errors: tuple[str, ...]
    """The stable codes of the errors that end like this."""


def table() -> list[Row]:
    """Every exit code, what it means, and the errors that lead to it: made from the classes themselves."""
    import pace_actors.pace  # noqa: F401, PLC0415 - every class is known when everything is loaded

    errors: dict[int, list[str]] = {code: [] for code in MEANINGS}
    for kind in error_kinds():
        errors.setdefault(exit_code(kind.__new__(kind)), []).append(kind.code)
    errors[USAGE].append("usage")
    return [Row(code, MEANINGS.get(code, "?"), tuple(sorted(set(names)))) for code, names in sorted(errors.items())]


def error_kinds() -> Iterator[type[PaceError | EventLogError]]:
    """Every class of error with an exit code."""
    roots: list[Any] = [PaceError, *(kind for kind in EXIT_CODES if issubclass(kind, EventLogError))]
    seen: set[type] = set()
    while roots:
        kind = roots.pop(0)
        if kind not in seen:
            seen.add(kind)
            yield kind
            roots += kind.__subclasses__()


def tell(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong and return the exit code."""
    if isinstance(error, click.ClickException):
        return _tell_usage(error, as_json=as_json)
    code = exit_code(error)
    name = error.code if isinstance(error, PaceError | EventLogError) else type(error).__name__
    fields = error.fields if isinstance(error, PaceError | EventLogError) else {}
    _say(name, _words(error), code, fields, as_json=as_json)
    return code


def tell_interrupted(*, as_json: bool) -> int:
    """Ctrl-C."""
    _say("interrupted", "interrupted; what was acknowledged is stored", INTERRUPTED, {}, as_json=as_json)
    return INTERRUPTED


def _tell_usage(error: click.ClickException, *, as_json: bool) -> int:
    words = " ".join(error.format_message().split())
    if isinstance(error, click.UsageError) and error.ctx is not None:
        words += f"{'' if words.endswith(('.', '?', '!')) else '.'} Try: {error.ctx.command_path} --help"
    _say("usage", words, USAGE, {}, as_json=as_json)
    return USAGE


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror.lower()}"
    advice = next((advice for kind, advice in ADVICE.items() if isinstance(error, kind)), "")
    if advice and isinstance(error, EventLogError):
        said = str(error).removesuffix(error.advice)
        return said + advice.format_map({"position": "POSITION"} | error.fields)
    return str(error) or type(error).__name__


def _say(name: str, words: str, code: int, fields: dict[str, Any], *, as_json: bool) -> None:
    line = repair(" ".join(words.split()))[0]
    if as_json:
        told = {"error": name, "message": line, "exit_code": code, "fields": {k: _plain(v) for k, v in fields.items()}}
        line = json_for(sys.stderr, told)
    else:
        line = f"pace: {line}"
    with contextlib.suppress(OSError):  # nobody reads stderr either
        print(line, file=sys.stderr, flush=True)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | bool | None) else repair(str(value))[0]
