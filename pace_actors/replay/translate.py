"""A predicate in words, put into the numbers and the stand-ins of a small log, so that it asks there what it asked."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pace_actors.errors import InvalidInput
from pace_actors.replay.bisect import Predicate
from pace_actors.replay.moments import Moment
from pace_actors.replay.stand_ins import StandIns, words_in
from pace_actors.replay.where import CONTAINS, EXISTS, PARTS, SummaryCovers, predicate

OTHERS_MAX: Final = 512
"""So many ways to put the words of an expression are tried."""


def in_numbers(words: str, holds: Predicate | None) -> str:
    """`summary covers N` by the new number of its turn, which shrinking has found; other words as they are."""
    return f"summary covers {holds.turn}" if isinstance(holds, SummaryCovers) else words


def in_stand_ins(words: str, stand_ins: StandIns, before: Moment, after: Moment) -> str:
    """The words that hold of the last moment in stand-ins, where the given ones hold of the same with its real words.

    What a `contains` names, also half a word, is looked up in the text and read in the same place of the other text. Of
    a Python expression each string is tried in stand-ins and as it is. Raises `InvalidInput` where nothing holds.
    """
    for tried in itertools.islice(_ways(words.strip(), stand_ins, before, after), OTHERS_MAX):
        if _holds(tried, after):
            return tried
    raise InvalidInput(
        f"{words!r} cannot be put into stand-ins: ask for words of the conversation with 'contains', or shrink without"
        " --anonymise",
        what="where",
    )


def _holds(words: str, moment: Moment) -> bool:
    try:
        return predicate(words)(moment)
    except InvalidInput:
        return False


def _ways(words: str, stand_ins: StandIns, before: Moment, after: Moment) -> Iterator[str]:
    found = CONTAINS.fullmatch(words) or EXISTS.fullmatch(words)
    if found is None:
        yield from _expressions(words, stand_ins)
        return
    part, said = found.groupdict().get("part", "facts"), found["words"]
    for place in _places(PARTS[part](before), said):
        there = PARTS[part](after)[place : place + len(said)]
        yield words[: found.start("words")] + there + words[found.end("words") :]
    yield words[: found.start("words")] + stand_ins.text(said) + words[found.end("words") :]


def _places(text: str, said: str) -> Iterator[int]:
    """Where a text holds some words, without regard to case, as long as case changes no length."""
    for found in re.finditer(re.escape(said), text, re.IGNORECASE):
        yield found.start()


def _expressions(words: str, stand_ins: StandIns) -> Iterator[str]:
    """The expression with its strings in all combinations of what they may be."""
    try:
        tree = ast.parse(words, mode="eval")
    except (SyntaxError, ValueError):
        yield words
        return
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    given = [str(node.value) for node in strings]
    for chosen in itertools.product(*(_strings(said, stand_ins) for said in given)):
        for node, said in zip(strings, chosen, strict=True):
            node.value = said
        yield words if list(chosen) == given else ast.unparse(tree)


def _strings(said: str, stand_ins: StandIns) -> Sequence[str]:
    """In stand-ins, where the log has its words; as a part of a word that it has; as it is."""
    ways: list[str] = []
    if any(map(stand_ins.is_word, words_in(said))):
        ways.append(stand_ins.text(said))
    ways += stand_ins.known(said)
    return [*dict.fromkeys([*ways, said])]
