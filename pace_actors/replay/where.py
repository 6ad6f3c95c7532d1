"""What can be asked of a moment, in words: the predicates of `bisect` and `shrink`.

| words | holds when |
|---|---|
| `context contains "Lisbon"` | the words are anywhere in what the planner sees; also `window`, `summary`, `facts` |
| `fact exists "lives in"` | a fact that holds has the words |
| `summary covers 12` | the accepted summary stands for that turn |
| `window size 4` | so many turns are in the window; also `>= 4`, `< 4` and so on |
| anything else | a Python expression over `state`, `facts`, `context`, `position` is true |

Words are compared without regard to case.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pace_actors.domain.known import facts_of
from pace_actors.errors import InvalidInput
from pace_actors.replay.bisect import Predicate
from pace_actors.replay.moments import Moment

_CONTAINS: Final = re.compile(r'(?P<part>context|window|summary|facts) contains "(?P<words>.+)"', re.DOTALL)
_EXISTS: Final = re.compile(r'fact exists "(?P<words>.+)"', re.DOTALL)
_COVERS: Final = re.compile(r"summary covers (?P<turn>\d+)")
_SIZE: Final = re.compile(r"window size (?P<compare>==|!=|<=|>=|<|>)? ?(?P<size>\d+)")
_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


def predicate(words: str) -> Predicate:
    """What the words ask. Raises `InvalidInput` for what is neither one of the forms nor an expression."""
    words = words.strip()
    if found := _CONTAINS.fullmatch(words):
        return _contains(found["part"], found["words"].casefold())
    if found := _EXISTS.fullmatch(words):
        return _contains("facts", found["words"].casefold())
    if found := _COVERS.fullmatch(words):
        turn = int(found["turn"])
        return lambda moment: (
            moment.state.summary is not None and (moment.state.first_turn <= turn <= moment.state.covered)
        )
    if found := _SIZE.fullmatch(words):
        compare, size = _COMPARE[found["compare"] or "=="], int(found["size"])
        return lambda moment: compare(len(moment.state.window), size)
    return _expression(words)


def _contains(part: str, words: str) -> Predicate:
    text = _PARTS[part]
    return lambda moment: words in text(moment).casefold()


def _context(moment: Moment) -> str:
    context = moment.context()
    pairs = (text for pair in context.window for text in (pair.user, pair.assistant))
    return "\n".join((context.system, *pairs, _facts(moment)))


def _window(moment: Moment) -> str:
    return "\n".join(text for turn in moment.state.window for text in (turn.user, turn.assistant))


def _summary(moment: Moment) -> str:
    return moment.state.summary.text if moment.state.summary else ""


def _facts(moment: Moment) -> str:
    known = facts_of(moment.key.user, moment.facts, moment.state.last_activity, include_sensitive=True)
    return "\n".join(f"{fact.subject} {fact.predicate} {fact.value}" for fact in known)


_PARTS: Final[Mapping[str, Callable[[Moment], str]]] = {
    "context": _context,
    "window": _window,
    "summary": _summary,
    "facts": _facts,
}


class _Names(dict[str, Any]):
    """The names of an expression; a context is only made where it is looked at."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(state=moment.state, facts=moment.facts, position=moment.position)
        self._moment = moment

    def __missing__(self, name: str) -> Any:
        if name == "context":
            return self._moment.context()
        raise KeyError(name)


def _expression(words: str) -> Predicate:
    try:
        code = compile(words, "<where>", "eval")
    except (SyntaxError, ValueError) as error:
        raise InvalidInput(
            f"{words!r} is neither 'context contains \"…\"', 'fact exists \"…\"', 'summary covers N', 'window size N' "
            f"nor a Python expression: {error}",
            what="where",
        ) from error

    def holds(moment: Moment) -> bool:
        try:
            return bool(eval(code, {}, _Names(moment)))  # noqa: S307 - of whoever runs the command, on his own machine
        except Exception as error:
            raise InvalidInput(
                f"{words!r} cannot be asked at position {moment.position}: {type(error).__name__}: {error}",
                what="where",
            ) from error

    return holds
