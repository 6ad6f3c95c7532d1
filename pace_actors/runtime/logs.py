"""Log lines: structlog over the logger `pace_actors` of the standard library, or the one that was given."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def default_logger() -> FilteringBoundLogger:
    """A logger that obeys whatever the application configured for `logging.getLogger("pace_actors")`."""
    import structlog  # noqa: PLC0415 - it loads rich; `import pace_actors` does not

    return cast(
        "FilteringBoundLogger",
        structlog.wrap_logger(
            logging.getLogger("pace_actors"),
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.contextvars.merge_contextvars,
                structlog.processors.KeyValueRenderer(key_order=["event"], drop_missing=True),
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=False,
        ),
    )


def quiet_logger() -> FilteringBoundLogger:
    """A logger that says nothing."""
    import structlog  # noqa: PLC0415 - as above

    def drop(_logger: object, _name: str, _event: object) -> str:
        raise structlog.DropEvent

    return cast("FilteringBoundLogger", structlog.wrap_logger(None, processors=[drop]))
