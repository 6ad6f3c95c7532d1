"""`pace inspect`: one HTML file about a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from eventlog.console import whole_file
from pace_actors.cli.options import check_there, examples, json_option, log_argument, reaching, replaying, threads_of
from pace_actors.cli.screen import Bar, console, print_json, shown_bytes
from pace_actors.domain.wording import counted

STDOUT = "-"
EXAMPLES = examples(
    "pace inspect ada.pace -o report.html",
    "pace inspect ada.pace -o kitchen.html --user ada --thread kitchen",
    "pace inspect ada.pace -o - | gzip > report.html.gz",
)


@click.command("inspect", short_help="Write one HTML file to look at a log with.", epilog=EXAMPLES)
@log_argument
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file; - is stdout.")
@click.option("--thread", help="Only threads of this name.")
@click.option("--user", help="Only this user's threads.")
@json_option
def command(directory: str, *, output: str, thread: str | None, user: str | None, as_json: bool) -> None:
    """Write one HTML file about the threads of a log: time line, events, the context at any position, what changed.

    It needs no server and fetches nothing: send it, or open it without a network. It holds every word of these threads
    that was not erased, and what is known of their users. A report that is there is replaced, any other file is not.
    """
    from pace_actors.replay.report import report  # noqa: PLC0415

    if output == STDOUT and as_json:
        raise click.UsageError("--json has stdout for itself: name a file for the report")
    with replaying(directory) as log, Bar("writing the report") as bar:
        keys = check_there(log, thread, user) if thread is not None or user is not None else threads_of(log)
        pieces = report(log, keys, title=Path(directory).name, on_progress=bar)
        if output == STDOUT:
            sys.stdout.buffer.writelines(piece.encode() for piece in pieces)
            return
        with reaching("output"):
            size = _write(Path(output), pieces)
    if as_json:
        print_json({"output": output, "bytes": size, "threads": len(keys)})
    else:
        told = f"{output}: {counted(len(keys), 'thread')}, {shown_bytes(size)}. Open it in a browser."
        console().print(told, soft_wrap=True)


def _write(output: Path, pieces: Iterable[str]) -> int:
    """The whole file or none; its bytes."""
    from pace_actors.replay.report.page import beginning  # noqa: PLC0415

    with whole_file(output, beginning()) as file:
        file.writelines(piece.encode() for piece in pieces)
        return file.tell()
