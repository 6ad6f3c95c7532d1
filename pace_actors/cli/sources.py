"""`pace sources`: which types of sources recall draws on for a user, and the switch of each."""

from __future__ import annotations

import click

from pace_actors.cli.options import directory, examples, find_owner, json_option, owner_option, reading
from pace_actors.cli.screen import console, print_json, shown_name
from pace_actors.cli.writing import writing
from pace_actors.domain.sources import FACTS, HISTORY, NOTES, PREFERENCES, SOURCES, is_off

BROUGHT = frozenset({HISTORY, NOTES, FACTS, PREFERENCES})
"""What there is without connectors."""

EXAMPLES = examples(
    "pace sources ada.pace --user ada",
    "pace sources ada.pace --user ada --off pace_history    conversations are not found any more",
    "pace sources ada.pace --user ada --on pace_history",
)


@click.command("sources", short_help="Show the sources of recall, or switch them.", epilog=EXAMPLES)
@directory
@owner_option
@click.option("--on", "on", multiple=True, type=click.Choice(SOURCES), help="Switch it on; can be given again.")
@click.option("--off", "off", multiple=True, type=click.Choice(SOURCES), help="Switch it off; can be given again.")
@json_option
def command(directory: str, *, user: str | None, on: tuple[str, ...], off: tuple[str, ...], as_json: bool) -> None:
    """Show which types of sources are on for a user, and switch them on or off.

    What is off is neither recorded nor recalled, at once. What it brought before is shown again when it is on again;
    what would have come meanwhile never is. To switch needs the directory for itself.
    """
    if both := set(on) & set(off):
        raise click.UsageError(f"--on and --off of {', '.join(sorted(both))}: one of them")
    if on or off:
        with writing(directory) as pace:
            owner = find_owner(pace.log, user, talks=True).user
            for source in (*on, *off):
                pace.switch(source, on=source in on, user=owner)
            stand = pace.sources(user=owner)
    else:
        from pace_actors.replay import replay_facts  # noqa: PLC0415 - loads the rules

        with reading(directory) as log:
            key = find_owner(log, user, talks=True)
            owner, switches = key.user, replay_facts(log, key).switches
        stand = {source: not is_off(switches, source) for source in SOURCES}
    if as_json:
        print_json({"user": owner, "sources": stand})
        return
    out = console()
    out.print(shown_name(owner), style="bold")
    for source, is_on in stand.items():
        words = "" if source in BROUGHT else "   nothing brings it yet"
        out.print(f"  {'on ' if is_on else 'off'}  {source:<16}{words}".rstrip(), style="dim" if words else "default")
