"""What went wrong with actors while a command had a directory open: for its end, and for its `--json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pace_actors.cli.options import NAMES_SHOWN
from pace_actors.cli.screen import printable
from pace_actors.domain.wording import counted

if TYPE_CHECKING:
    from pace_actors.pace import Stats


def incidents_of(stats: Stats) -> dict[str, object]:
    """Those of an open Pace. Nothing of them is in the log."""
    return {
        "restarts": stats.restarts,
        "given_up": stats.given_up,
        "dead_letters": stats.dead_letters,
        "last_dead_letters": stats.last_dead_letters,
    }


def incident_lines(stats: Stats) -> Iterator[str]:
    """One line each; none when nothing went wrong."""
    for one in stats.given_up:
        yield (
            f"{printable(one.actor)} failed {one.failures:,} times, the last time with {one.error} in {one.where}:"
            f" it is given up, and tried again in {one.retry_in_s:.0f} s or when the directory is opened again"
        )
    if stats.restarts:
        yield f"actors were built again {counted(stats.restarts, 'time')}; the log lines actor_failed say why"
    if stats.dead_letters:
        yield f"{counted(stats.dead_letters, 'message')} reached nobody:"
        last = [letter for letter in stats.last_dead_letters if letter.reason != "full"][-NAMES_SHOWN:]
        for letter in last:
            yield f"  {letter.message} to {printable(letter.actor)}: {letter.reason}"
        if stats.dead_letters > len(last):
            yield f"  and {stats.dead_letters - len(last):,} before; --json lists up to 100"
