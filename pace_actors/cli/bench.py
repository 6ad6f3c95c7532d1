"""`pace bench races`: what late and overlapping summaries do to a conversation, in a minute, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from pace_actors.cli.options import examples, json_option
from pace_actors.cli.screen import Bar, console, print_json
from pace_actors.domain.wording import counted

if TYPE_CHECKING:
    from pace_actors.simulation.races.race import Row

RUNS = 3
PLAIN_RUNS = 30
MEANS = (0.5, 1.0, 2.0, 4.0)
EXAMPLES = examples(
    "pace bench races",
    "pace bench races --runs 10 --shape bursts --failing 0.05",
    "pace bench races --json | jq '.rows[] | [.strategy, .load.mean_call, .lost.value]'",
)


@click.command("bench", short_help="Compare ways to keep a summary, under one load.", epilog=EXAMPLES)
@click.argument("name", type=click.Choice(["races"]))
@click.option("--runs", type=click.IntRange(min=1), default=RUNS, show_default=True, help="Conversations of our modes.")
@click.option("--shape", default="log-normal", show_default=True, help="How the durations of calls are spread.")
@click.option("--failing", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Share of failing calls.")
@click.option("--resets", type=click.FloatRange(0, 1), default=0.0, show_default=True, help="Resets a turn.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The first seed.")
@json_option
def command(*, name: str, runs: int, shape: str, failing: float, resets: float, seed: int, as_json: bool) -> None:
    """How many displaced turns each strategy loses for ever, against how long a call of the model takes.

    Three usual designs and both modes of this one, which run the real actors, are put through the same conversations of
    120 turns on a virtual clock. Shapes: constant, log-normal, bimodal, heavy tail, bursts, outage.
    """
    from pace_actors.errors import InvalidInput  # noqa: PLC0415
    from pace_actors.simulation.races.load import SHAPES, Load  # noqa: PLC0415
    from pace_actors.simulation.races.race import STRATEGIES, race  # noqa: PLC0415

    if shape not in SHAPES:
        raise InvalidInput(f"there is no shape {shape!r}; there are {', '.join(SHAPES)}", what="shape")
    plain = len(STRATEGIES) - 2
    counts = [runs * PLAIN_RUNS // RUNS] * plain + [runs] * 2
    rows: list[Row] = []
    done, total = 0, sum(counts) * len(MEANS)
    with Bar(name) as bar:

        def step() -> None:
            nonlocal done
            done += 1
            bar(done, total)

        for mean in MEANS:
            load = Load(shape=shape, mean_call=mean, failing=failing, resets=resets)
            for make, count in zip(STRATEGIES, counts, strict=True):
                rows.append(race(make, load, range(seed, seed + count), step))
    if as_json:
        print_json({"seed": seed, "rows": msgspec.to_builtins(rows)})
    else:
        _show(rows)


def _show(rows: list[Row]) -> None:
    from rich.table import Table  # noqa: PLC0415 - slow to load

    table = Table(title="displaced turns lost for ever, by the mean duration of a call in times between two turns")
    table.add_column("strategy")
    for mean in MEANS:
        table.add_column(f"{mean:g}", justify="right")
    names = list(dict.fromkeys(row.strategy for row in rows))
    for name in names:
        mine = [row for row in rows if row.strategy == name]
        table.add_row(name, *(f"{row.lost.value:.0f} %" if row.lost_turns else f"0 of {row.at_end:,}" for row in mine))
    out = console()
    out.print(table)
    for name in names:
        mine = [row for row in rows if row.strategy == name]
        hidden = max(row.hidden.value for row in mine)
        missing = f"up to {hidden:.0f} % of turns" if hidden else "no turn"
        behind = counted(max(row.lag_max for row in mine), "turn")
        out.print(f"{name}: {missing} missing from a context; coverage up to {behind} behind")
    out.print("docs/races.md says why; all figures: python -m bench.races", style="dim")
