"""Breaks a handler of an actor at its n-th line: between any two changes of its state.

A `Breaker` counts the lines that an actor's modules execute while it handles one message, and raises `Broken` in front
of the one that it was told, once. `play_lines` plays with one line after the other broken; `every` says which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, cast

import pytest
import structlog
from structlog.typing import EventDict, FilteringBoundLogger

STRIDE = 9
"""Of so many lines `make test` breaks one; where it begins differs from case to case."""
LINES_MAX = 1000


class Broken(Exception):
    """What a broken line raises."""


class Breaker:
    """Breaks `method` of a class of actors. Armed by `arm`; `struck` says where it has struck."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        actor: type,
        method: str,
        files: tuple[str, ...],
        *,
        leave_out: frozenset[str] = frozenset(),
    ) -> None:
        self._files = files
        self._leave_out = leave_out
        self._chosen: Callable[[Any, Any], bool] | None = None
        self._line = self._lines = 0
        self.struck = ""
        whole = getattr(actor, method)

        def broken(of: Any, *arguments: Any) -> None:
            if self._chosen is None or self.struck or not self._chosen(of, arguments[0]):
                whole(of, *arguments)
                return
            self._lines = 0
            before = sys.gettrace()
            sys.settrace(self._call)
            try:
                whole(of, *arguments)
            finally:
                sys.settrace(before)

        patch.setattr(actor, method, broken)

    def arm(self, chosen: Callable[[Any, Any], bool], line: int) -> None:
        """Strike in front of a line (from 1) of the next call with an actor and an argument that are chosen."""
        self._chosen, self._line, self.struck = chosen, line, ""

    def _is_watched(self, code: CodeType) -> bool:
        return code.co_filename.endswith(self._files) and code.co_name not in self._leave_out

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002 - as a tracer is called
        return self._each if self._is_watched(frame.f_code) else None

    def _each(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002
        if event == "line":
            self._lines += 1
            if self._lines == self._line:
                self.struck = f"{frame.f_code.co_name}:{frame.f_lineno}"
                raise Broken(self.struck)
        return self._each


def every(cases: Sequence[str]) -> pytest.MarkDecorator:
    """Parameters `case` and `stride`: each case at some of its lines, and as a soak at all of them."""
    some = [pytest.param(case, STRIDE, id=case) for case in cases]
    all_of_them = [pytest.param(case, 1, id=f"{case}, every line", marks=pytest.mark.soak) for case in cases]
    return pytest.mark.parametrize(("case", "stride"), [*some, *all_of_them])


def play_lines(case: str, stride: int, play: Callable[[int], bool]) -> None:
    """Play with one line after the other broken, until `play` says that there is no such line."""
    line = first = 1 + sum(map(ord, case)) % stride % 4
    while play(line):
        line += stride
        assert line < LINES_MAX
    assert line > first, f"nothing of {case} was broken"
    if stride == 1:
        print(f"A2: {case}: broken at each of {line - 1} lines")  # noqa: T201 - `make soak` prints its figures


class Lines:
    """Log lines, kept."""

    def __init__(self) -> None:
        self.seen: list[EventDict] = []
        self.logger = cast("FilteringBoundLogger", structlog.wrap_logger(None, processors=[self._take]))

    def _take(self, _logger: object, _name: str, line: EventDict) -> str:
        self.seen.append(dict(line))
        raise structlog.DropEvent

    def named(self, event: str) -> list[EventDict]:
        """Those of one event."""
        return [line for line in self.seen if line["event"] == event]
