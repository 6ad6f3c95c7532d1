"""Log lines: structlog over the logger `pace_actors` of the standard library, or the logger that was given.

structlog is loaded by the first line that anybody wants to see, because it loads much else. What an application has
bound with `structlog.contextvars` travels with its messages, and is bound again wherever a line is said because of
them.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from pace_actors.messages import Bound

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

BOUND_MAX = 16
NAME_CHARS_MAX = 64
VALUE_CHARS_MAX = 256
"""What travels with a message: so many variables, the first by name; longer names are left out, longer texts cut."""

P = ParamSpec("P")
R = TypeVar("R")
_standard = logging.getLogger("pace_actors")


class StandardLogger:
    """A logger that obeys whatever the application has configured for `logging.getLogger("pace_actors")`."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def bind(self, **fields: Any) -> StandardLogger:
        """The same with more fields on each line."""
        return StandardLogger({**self._fields, **fields})

    def debug(self, event: str, **fields: Any) -> None:
        """Say a line."""
        if _standard.isEnabledFor(logging.DEBUG):
            self._rendering().debug(event, **fields)

    def info(self, event: str, **fields: Any) -> None:
        """Say a line."""
        if _standard.isEnabledFor(logging.INFO):
            self._rendering().info(event, **fields)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rendering(), name)

    def _rendering(self) -> FilteringBoundLogger:
        return _rendered().bind(**self._fields)


@cache
def _rendered() -> FilteringBoundLogger:
    import structlog  # noqa: PLC0415 - it loads rich

    return cast(
        "FilteringBoundLogger",
        structlog.wrap_logger(
            _standard,
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.contextvars.merge_contextvars,
                structlog.processors.KeyValueRenderer(key_order=["event"], drop_missing=True),
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=False,
        ),
    )


def default_logger() -> FilteringBoundLogger:
    """The logger of who gives none."""
    return cast("FilteringBoundLogger", StandardLogger({}))


class CarefulLogger:
    """A logger of the application's that may raise: a line is lost then, and nothing else."""

    __slots__ = ("_logger",)

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger

    def bind(self, **fields: Any) -> CarefulLogger:
        """The same with more fields on each line."""
        try:
            return CarefulLogger(self._logger.bind(**fields))
        except Exception:  # noqa: BLE001 - it is not ours
            return self

    def __getattr__(self, level: str) -> Callable[..., None]:
        def say(event: str, **fields: Any) -> None:
            with contextlib.suppress(Exception):
                getattr(self._logger, level)(event, **fields)

        return say


def careful(logger: FilteringBoundLogger) -> FilteringBoundLogger:
    """The logger, and whatever it raises goes no further."""
    return cast("FilteringBoundLogger", CarefulLogger(logger))


class QuietLogger:
    """A logger that says nothing."""

    def bind(self, **_: Any) -> QuietLogger:
        """The same."""
        return self

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _say_nothing


def _say_nothing(*_: Any, **__: Any) -> None:
    pass


def quiet_logger() -> FilteringBoundLogger:
    """A logger that says nothing."""
    return cast("FilteringBoundLogger", QuietLogger())


# --- what the application has bound -----------------------------------------------------------------------------------


def bound_here() -> Bound:
    """What the caller has bound with `structlog.contextvars`, within the limits above. Raises nothing."""
    module = sys.modules.get("structlog.contextvars")  # nothing is bound by who has not loaded it
    variables = module.get_contextvars() if module is not None else None
    if not variables:
        return ()
    named = sorted(name for name in variables if len(name) <= NAME_CHARS_MAX)
    return tuple((name, _short(variables[name])) for name in named[:BOUND_MAX])


def _short(value: object) -> str | int | float | None:
    if value is None or type(value) in {bool, int, float}:
        return cast("int | float | None", value)
    try:
        return str(value)[:VALUE_CHARS_MAX]
    except Exception:  # noqa: BLE001 - an object of the user's
        return type(value).__name__


def saying(bound: Bound, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call with these variables bound for log lines and no others; nothing of it is left behind."""
    context = contextvars.Context()
    if bound:
        from structlog.contextvars import bind_contextvars  # noqa: PLC0415 - loaded, or nothing would be bound

        context.run(bind_contextvars, **dict(bound))
    return context.run(call, *args, **kwargs)
