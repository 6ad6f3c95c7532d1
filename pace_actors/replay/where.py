"""What can be asked of a moment, in words: the predicates of `bisect` and `shrink`.

| words | holds when |
|---|---|
| `context contains "Lisbon"` | the words are anywhere in what the planner sees: summary, extracts, window, facts |
| `facts contains "Lisbon"` | in a fact that holds, a sensitive one too; also `window`, `summary` |
| `fact exists "lives in"` | a fact that holds has the words |
| `summary covers 12` | the accepted summary stands for that turn |
| `window size 4` | so many turns are in the window; also `>= 4`, `< 4` and so on |
| `decided FactEvicted`, `heard ResetAsked` | the batch that led there has such an event |
| anything else | a Python expression over `state`, `facts`, `context`, `batch`, `position` is true |

Words are compared without regard to case, also inside longer words: `contains "Ann"` holds of "cannot"; only
`pace why --missing` looks for whole words first. A context has no sensitive facts, because the planner sees them where
it asks for them only, and not what an index would find, for none is asked. `shrink` knows `diverges` besides,
which is asked of decisions, not of moments.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pace_actors.domain.fold import Batch
from pace_actors.domain.known import facts_of
from pace_actors.domain.words import Words
from pace_actors.errors import InvalidInput
from pace_actors.events import (
    REGISTRY,
    AnswerArrived,
    CandidatesExtracted,
    Decided,
    FactReworded,
    FactStated,
    Heard,
    TurnHeard,
)
from pace_actors.replay.moments import Moment

CONTAINS: Final = re.compile(r'(?P<part>context|window|summary|facts) contains "(?P<words>.+)"', re.DOTALL)
EXISTS: Final = re.compile(r'fact exists "(?P<words>.+)"', re.DOTALL)
_COVERS: Final = re.compile(r"summary covers (?P<turn>\d+)")
_EVENT: Final = re.compile(r"(?P<half>decided|heard) (?P<type>\w+)")
_SIZE: Final = re.compile(r"window size (?P<compare>==|!=|<=|>=|<|>)? ?(?P<size>\d+)")
_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Where:
    """A question to a moment. `bisect` asks a cheap one after every batch, another only where it may have changed."""

    def __init__(
        self,
        holds: Callable[[Moment], bool],
        *,
        cheap: bool = True,
        may_begin: Callable[[Batch], bool] | None = None,
    ) -> None:
        self._holds = holds
        self.cheap = cheap
        """Whether asking costs no more than folding a batch does."""
        self.may_begin = may_begin
        """Says of a batch that it may begin to hold there; None: nobody knows without asking."""

    def __call__(self, moment: Moment) -> bool:
        """Whether it holds then. Raises `InvalidInput` where an expression cannot be asked."""
        return self._holds(moment)


class SummaryCovers(Where):
    """Whether the accepted summary stands for a turn."""

    def __init__(self, turn: int) -> None:
        super().__init__(self._covers)
        self.turn = turn

    def _covers(self, moment: Moment) -> bool:
        state = moment.state
        return state.summary is not None and state.first_turn <= self.turn <= state.covered


def predicate(words: str) -> Where:
    """What the words ask. Raises `InvalidInput` for what is neither one of the forms nor an expression."""
    words = words.strip()
    if found := CONTAINS.fullmatch(words):
        return _contains(found["part"], Words(found["words"]))
    if found := EXISTS.fullmatch(words):
        return _contains("facts", Words(found["words"]))
    if found := _COVERS.fullmatch(words):
        return SummaryCovers(int(found["turn"]))
    if found := _SIZE.fullmatch(words):
        compare, size = _COMPARE[found["compare"] or "=="], int(found["size"])
        return Where(lambda moment: compare(len(moment.state.window), size))
    if found := _EVENT.fullmatch(words):
        return _event(found["half"], found["type"])
    return _expression(words)


def _event(half: str, name: str) -> Where:
    if name not in REGISTRY.names:
        raise InvalidInput(f"no event is called {name!r}; they are {', '.join(REGISTRY.names)}", what="where")

    def holds(moment: Moment) -> bool:
        batch = moment.batch
        if batch is None:
            return False
        return name in map(_name, batch.decided if half == "decided" else (batch.heard,))

    return Where(holds)


def _name(event: Heard | Decided) -> str:
    return REGISTRY.name_of(type(event))


def _contains(part: str, words: Words) -> Where:
    text = PARTS[part]
    return Where(
        lambda moment: words.anywhere_in(text(moment)),
        cheap=part in ("window", "summary"),
        may_begin=lambda batch: any(map(words.anywhere_in, texts_of(batch.heard))),
    )


def texts_of(heard: Heard) -> Iterator[str]:
    """Everything in an input that a context can show, each as one text."""
    match heard:
        case TurnHeard():
            yield heard.user
            yield heard.assistant
            yield from (word for action in heard.actions for word in (action.name, action.arguments, action.outcome))
        case AnswerArrived():
            yield heard.text if heard.cleaned is None else heard.cleaned
        case CandidatesExtracted() | FactStated():
            candidates = (heard.candidate,) if isinstance(heard, FactStated) else heard.candidates
            yield from (f"{said.subject} {said.predicate} {said.value}" for said in (c.said for c in candidates))
        case FactReworded(said=said):
            yield f"{said.subject} {said.predicate} {said.value}"
        case _:
            return


def _context(moment: Moment) -> str:
    context = moment.context()
    pairs = (text for pair in context.window for text in (pair.user, pair.assistant))
    return "\n".join((context.system, *pairs, _facts(moment, include_sensitive=False)))


def _window(moment: Moment) -> str:
    return "\n".join(text for turn in moment.state.window for text in (turn.user, turn.assistant))


def _summary(moment: Moment) -> str:
    return moment.state.summary.text if moment.state.summary else ""


def _facts(moment: Moment, *, include_sensitive: bool = True) -> str:
    known = facts_of(moment.key.user, moment.facts, moment.state.last_activity, include_sensitive=include_sensitive)
    return "\n".join(f"{fact.subject} {fact.predicate} {fact.value}" for fact in known)


PARTS: Final[Mapping[str, Callable[[Moment], str]]] = {
    "context": _context,
    "window": _window,
    "summary": _summary,
    "facts": _facts,
}


class _Names(dict[str, Any]):
    """The names of an expression; a context is only made where it is looked at."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(state=moment.state, facts=moment.facts, batch=moment.batch, position=moment.position)
        self._moment = moment

    def __missing__(self, name: str) -> Any:
        if name == "context":
            return self._moment.context()
        raise KeyError(name)


def _expression(words: str) -> Where:
    try:
        code = compile(words, "<where>", "eval")
    except (SyntaxError, ValueError) as error:
        raise InvalidInput(
            f"{words!r} is neither 'context contains \"…\"', 'fact exists \"…\"', 'summary covers N', 'window size N', "
            "'decided EVENT', 'heard EVENT' "
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

    return Where(holds, cheap="context" not in code.co_names)
