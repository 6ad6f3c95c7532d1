"""`pace remember`: a fact, stated outright."""

from __future__ import annotations

from datetime import datetime

import click
import msgspec

from pace_actors.cli.options import When, directory, examples, find_owner, json_option, owner_option
from pace_actors.cli.screen import console, print_json, printable, shown_name
from pace_actors.cli.writing import writing
from pace_actors.errors import InvalidInput

EXAMPLES = examples(
    "pace remember ada.pace user prefers 'dark mode' --topic preference",
    "pace remember ada.pace user 'is allergic to' hazelnuts --topic health --user ada",
    "pace remember ada.pace user 'is in' Bergen --expires 2026-03-08",
)
REFUSED = {
    "secret": "it holds a secret, which is kept nowhere",
    "confidence": "a fact that is less sure than 0.7 is none",
}
"""Why nothing is remembered, in words."""
OUTCOMES = {
    "added": "remembered as fact",
    "confirmed": "known already, confirmed: fact",
    "superseded": "noted, but what holds already outweighs it: fact",
}


@click.command("remember", short_help="State a fact outright.", epilog=EXAMPLES)
@directory
@click.argument("subject")
@click.argument("predicate")
@click.argument("value")
@owner_option
@click.option("--topic", "topics", multiple=True, help="A hashtag, with # or without; can be given again.")
@click.option(
    "--confidence", type=click.FloatRange(0, 1), default=1.0, show_default=True, help="How sure it is, from 0 to 1."
)
@click.option("--expires", type=When(), metavar="TIME", help="When it stops to hold: an ISO time, by default in UTC.")
@json_option
def command(
    directory: str,
    subject: str,
    predicate: str,
    value: str,
    *,
    user: str | None,
    topics: tuple[str, ...],
    confidence: float,
    expires: datetime | None,
    as_json: bool,
) -> None:
    """State outright that SUBJECT PREDICATE VALUE holds. It beats what was extracted, and lifts what was forgotten.

    Health, money and relationships (the topics health, finance, relationship, and some words) make it sensitive: it is
    kept, and shown only where it is asked for. A secret is refused, exit code 2.

    Needs the directory for itself, and makes it if it is not there. Summarises nothing and learns nothing meanwhile.
    """
    with writing(directory, create=True) as pace:
        owner = find_owner(pace.log, user, new=True).user
        stated = pace.remember(
            subject, predicate, value, user=owner, topics=topics, confidence=confidence, expires=expires
        )
    if stated.outcome == "rejected":
        why = REFUSED.get(stated.reason, stated.reason)
        raise InvalidInput(f"not remembered: {why}", what="value", reason=stated.reason, position=stated.position)
    if as_json:
        print_json({"user": owner} | msgspec.to_builtins(stated))
    else:
        words = printable(f"{subject} {predicate} {value}")
        console().print(f"{OUTCOMES[stated.outcome]} {stated.fact} of {shown_name(owner)}: {words}")
