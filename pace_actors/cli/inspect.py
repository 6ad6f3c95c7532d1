"""`pace inspect`: one HTML file about a log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from pace_actors.cli.options import check_there, examples, json_option, log_argument, reaching, replaying, threads_of
from pace_actors.cli.screen import Bar, console, counted, print_json, shown_bytes
from pace_actors.errors import InvalidInput

HEAD_BYTES = 1024
EXAMPLES = examples(
    "pace inspect ada.pace -o report.html",
    "pace inspect ada.pace -o kitchen.html --user ada --thread kitchen",
)


@click.command("inspect", short_help="Write one HTML file to look at a log with.", epilog=EXAMPLES)
@log_argument
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file.")
@click.option("--thread", help="Only threads of this name.")
@click.option("--user", help="Only this user's threads.")
@json_option
def command(directory: str, *, output: Path, thread: str | None, user: str | None, as_json: bool) -> None:
    """Write one HTML file about the threads of a log: time line, events, the context at any position, what changed.

    It needs no server and fetches nothing: send it, or open it without a network. It holds every word of these threads
    that was not erased, and what is known of their users. A report that is there is replaced, any other file is not.
    """
    from pace_actors.replay.report import report  # noqa: PLC0415

    with replaying(directory) as log, Bar("writing the report") as bar:
        keys = check_there(log, thread, user) if thread is not None or user is not None else threads_of(log)
        with reaching("output"):
            _check_target(output)
            size = _write(output, report(log, keys, title=Path(directory).name, on_progress=bar))
    if as_json:
        print_json({"output": str(output), "bytes": size, "threads": len(keys)})
    else:
        told = f"{output}: {counted(len(keys), 'thread')}, {shown_bytes(size)}. Open it in a browser."
        console().print(told, soft_wrap=True)


def _check_target(output: Path) -> None:
    """Refuse to write over what is no report."""
    from pace_actors.replay.report.page import MARK  # noqa: PLC0415

    if not output.exists():
        return
    with output.open("rb") as there:
        head = there.read(HEAD_BYTES)
    if head and MARK.encode() not in head:
        raise InvalidInput(f"{output} is there and is no report; name another file", what="output")


def _write(output: Path, pieces: Iterable[str]) -> int:
    """The whole file or none; its bytes."""
    number, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as target:
            target.writelines(pieces)
            size = target.tell()
        Path(name).replace(output)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return size
