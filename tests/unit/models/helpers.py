"""Tasks and summarisers that several tests of models use."""

from __future__ import annotations

from collections.abc import Callable

from pace_actors.models.port import (
    ExtractItem,
    ExtractReply,
    ExtractTask,
    FoldReply,
    FoldTask,
    FoldTurn,
    ModelFailure,
)


def task_of(*texts: tuple[str, str], base: str = "", first: int = 1, deadline_s: float = 60.0) -> FoldTask:
    turns = tuple(FoldTurn(first + place, user, assistant) for place, (user, assistant) in enumerate(texts))
    return FoldTask(base=base, turns=turns, sentences=4, chars=1600, deadline_s=deadline_s)


class Clock:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Inner:
    """A summariser made of a function; counts its calls."""

    def __init__(self, fold: Callable[[FoldTask], FoldReply], name: str = "inner", first_call_s: float = 0.0) -> None:
        self._first_call_s = first_call_s
        self._fold = fold
        self._name = name
        self.tasks: list[FoldTask] = []
        self.closed = 0

    @property
    def name(self) -> str:
        return self._name

    def fold(self, task: FoldTask) -> FoldReply:
        self.tasks.append(task)
        return self._fold(task)

    def patience_s(self, asked_s: float) -> float:
        return max(asked_s, self._first_call_s)

    def close(self) -> None:
        self.closed += 1


def failing(kind: str, detail: str = "") -> Callable[[FoldTask], FoldReply]:
    def fold(_: FoldTask) -> FoldReply:
        raise ModelFailure(kind, detail)  # type: ignore[arg-type]

    return fold


def answering(text: str) -> Callable[[FoldTask], FoldReply]:
    return lambda task: FoldReply(text=text, input_chars=task.input_chars)


class Log:
    """Collects what a structlog logger would be told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def warning(self, event: str, **fields: object) -> None:
        self.lines.append((event, fields))

    def info(self, event: str, **fields: object) -> None:
        self.lines.append((event, fields))


class Finder(Inner):
    """An extractor made of a function; counts its calls."""

    def __init__(self, extract: Callable[[ExtractTask], ExtractReply], name: str = "finder") -> None:
        super().__init__(answering(""), name)
        self._extract = extract
        self.asked: list[ExtractTask] = []

    def extract(self, task: ExtractTask) -> ExtractReply:
        self.asked.append(task)
        return self._extract(task)


def finding(*items: ExtractItem) -> Callable[[ExtractTask], ExtractReply]:
    return lambda _: ExtractReply(items, 0, "tiny", "stop")


def failing_to_find(failure: ModelFailure) -> Callable[[ExtractTask], ExtractReply]:
    def extract(_: ExtractTask) -> ExtractReply:
        raise failure

    return extract


def turn_of(user: str, assistant: str = "", *shown: str, deadline_s: float = 60.0) -> ExtractTask:
    return ExtractTask(user, assistant, shown, deadline_s)
