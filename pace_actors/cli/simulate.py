"""`pace simulate`: looks for an order of events that loses a turn, shows a hole, or lets an old summary stand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from pace_actors.cli.options import examples, json_option, reaching
from pace_actors.cli.screen import Bar, console, print_json
from pace_actors.domain.wording import counted
from pace_actors.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from pace_actors.simulation.explore import Explored, Violation

SEEDS = 1000
PERCENT = 100
EXAMPLES = examples(
    "pace simulate                          a thousand schedules with every kind of fault",
    "pace simulate --seeds 20000 --fault late --fault overlap --fault crash",
    "pace simulate --seed 4711 --seeds 1    one schedule again",
    "pace simulate --script violation-4711/schedule.json",
    "pace simulate --list                   the kinds of fault",
)


@click.command("simulate", short_help="Look for an order of events that breaks the rules.", epilog=EXAMPLES)
@click.option("--seeds", type=click.IntRange(min=1), default=SEEDS, show_default=True, help="How many schedules.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first of them.")
@click.option("--fault", "faults", multiple=True, help="Only this kind of fault; may be given again. All by default.")
@click.option("--script", type=click.Path(path_type=Path), help="Run this stored schedule instead.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where a violation is written: a new folder.")
@click.option("--list", "listed", is_flag=True, help="Say what kinds of fault there are.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    seeds: int,
    seed: int,
    faults: tuple[str, ...],
    script: Path | None,
    output: Path | None,
    listed: bool,
    as_json: bool,
) -> None:
    """Run the real actors on a virtual clock, with everything that can go wrong, and look for what breaks the rules.

    Answers are late, overlap, fail and come twice; there are resets, crashes and failing disks. Every state and every
    context is held against an account of its own. No model is called and no file is read. The same seed gives the same
    run; every 20th is run twice and must give the same log. At the first violation it stops, shrinks the schedule,
    writes it with its log, and exits with code 1.
    """
    from pace_actors.simulation.explore import explore, shrink  # noqa: PLC0415
    from pace_actors.simulation.faults import check_faults  # noqa: PLC0415

    if listed:
        _list(as_json=as_json)
        return
    if script is not None:
        ctx.exit(_run_script(script, as_json=as_json))
    check_faults(faults)
    started = time.monotonic()
    with Bar("simulating") as bar:
        found = explore(range(seed, seed + seeds), faults, on_run=lambda so_far: bar(so_far.runs, seeds))
    took_s = time.monotonic() - started
    if found.violation is None:
        _show(found, faults, took_s, as_json=as_json)
        return
    smallest = shrink(found.violation)
    place, again = _write(smallest, seed := found.violation.schedule.seed, output)
    if as_json:
        _tell_json(smallest, seed, place, again)
    else:
        out = console()
        out.print(f"seed {seed} breaks it, after {counted(found.runs, 'schedule')} without a fault", style="red")
        out.print(
            f"{len(smallest.schedule.acts)} of its {counted(len(found.violation.schedule.acts), 'act')} are enough"
        )
        _tell(out, smallest, again)
    ctx.exit(1)


def _run_script(place: Path, *, as_json: bool) -> int:
    from pace_actors.simulation.explore import Violation, attempt, read_schedule  # noqa: PLC0415

    with reaching("script"):
        script = read_schedule(place)
    ran = attempt(script)
    again = f"pace simulate --script {place}"
    if isinstance(ran, Violation):
        if as_json:
            _tell_json(ran, script.seed, None, again)
        else:
            _tell(console(), ran, again)
        return 1
    if as_json:
        print_json({"violation": None, "steps": ran.steps})
    else:
        console().print(f"nothing is broken, in {counted(ran.steps, 'step')}", style="green")
    return 0


def _list(*, as_json: bool) -> None:
    from pace_actors.simulation.faults import FAULTS  # noqa: PLC0415

    if as_json:
        print_json(FAULTS)
        return
    out = console()
    for name, words in FAULTS.items():
        out.print(f"{name:<10} {words}")


def _show(found: Explored, faults: tuple[str, ...], took_s: float, *, as_json: bool) -> None:
    if as_json:
        told = msgspec.to_builtins(found) | {"faults": list(faults), "seconds": round(took_s, 3)}
        print_json(told | {"schedules_per_second": round(found.runs / took_s, 1)})
        return
    out = console()
    out.print(f"{counted(found.runs, 'schedule')}, nothing is broken", style="green")
    out.print(f"{found.runs / took_s:,.1f} a second; {found.distinct:,} distinct orders; {found.repeated:,} run twice")
    out.print(f"digest of all logs {found.digest}")
    out.print(
        f"{counted(found.turns, 'turn')}, {counted(found.requests, 'fold')}, {found.accepted:,} accepted, "
        f"{sum(found.rejected.values()):,} refused"
    )
    shares = (
        ("overlapping folds", found.overlapping),
        ("an end of the session while one was in flight", found.resets_in_flight),
        ("a crash or restart while one was in flight", found.crashes_in_flight),
    )
    for words, count in shares:
        out.print(f"{count * PERCENT / found.runs:5.1f} % with {words}")


def _write(smallest: Violation, seed: int, output: Path | None) -> tuple[Path | None, str]:
    """Store it, and say how to see it again; where it cannot be stored, by its seed."""
    from pace_actors.simulation.explore import SCRIPT_NAME, write_violation  # noqa: PLC0415

    folder = output or Path(f"violation-{seed}")
    try:
        with reaching("output"):
            write_violation(smallest, folder)
    except InvalidInput as refused:
        click.echo(f"pace: {refused}", err=True)
        return None, f"pace simulate --seed {seed} --seeds 1"
    return folder, f"pace simulate --script {folder / SCRIPT_NAME}"


def _tell_json(violation: Violation, seed: int, folder: Path | None, again: str) -> None:
    told = {"words": violation.words, "seed": seed, "act": violation.act, "schedule": violation.schedule}
    print_json({"violation": told, "folder": None if folder is None else str(folder), "again": again})


def _tell(out: Console, violation: Violation, again: str) -> None:
    script = violation.schedule
    out.print(violation.words, style="red")
    for act in script.acts:
        fields = " ".join(f"{name}={value}" for name, value in msgspec.to_builtins(act).items() if name != "do")
        out.print(f"  {act.do} {fields}".rstrip())
    answers = ", ".join(f"{answer.what} after {answer.delay_s:g} s" for answer in script.answers)
    settings = ", ".join(f"{name}={value}" for name, value in script.settings.items())
    out.print(f"answers of the model: {answers or 'good, at once'}; settings: {settings}")
    out.print(f"again: {again}", style="bold")
