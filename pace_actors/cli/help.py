"""`pace help`: a command's help, and the table of exit codes."""

from __future__ import annotations

import click

from pace_actors.cli import failures
from pace_actors.cli.options import examples, json_option
from pace_actors.cli.screen import console, print_json

EXIT_CODES = "exit-codes"
EXAMPLES = examples("pace help import", f"pace help {EXIT_CODES}")


@click.command("help", short_help="Show the help of a command, or the exit codes.", epilog=EXAMPLES)
@click.argument("topic", required=False)
@json_option
@click.pass_context
def command(ctx: click.Context, topic: str | None, *, as_json: bool) -> None:
    """Show the help of a command, or with the TOPIC 'exit-codes' what each exit code means."""
    assert ctx.parent is not None
    group = ctx.parent.command
    assert isinstance(group, click.Group)
    if topic == EXIT_CODES:
        _exit_codes(as_json=as_json)
    elif topic is None:
        click.echo(group.get_help(ctx.parent))
    else:
        found = group.get_command(ctx, topic)
        if found is None:
            raise click.UsageError(
                f"no command {topic!r}; there are {', '.join(group.list_commands(ctx))}, {EXIT_CODES}"
            )
        with click.Context(found, parent=ctx.parent, info_name=topic) as inner:
            click.echo(found.get_help(inner))


def _exit_codes(*, as_json: bool) -> None:
    table = failures.table()
    if as_json:
        print_json([row._asdict() for row in table])
        return
    from rich import box  # noqa: PLC0415 - only for what is shown to a person
    from rich.table import Table  # noqa: PLC0415

    rows = Table(box=box.SIMPLE_HEAD)
    rows.add_column("code", justify="right")
    rows.add_column("meaning")
    rows.add_column("errors", style="dim", overflow="fold")
    for row in table:
        rows.add_row(str(row.code), row.means, ", ".join(row.errors))
    console().print(rows)
