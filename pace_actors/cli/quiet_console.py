"""A rich console that leaves a broken pipe to the entry point."""

from __future__ import annotations

from typing import NoReturn

from rich.console import Console


class QuietConsole(Console):
    """Raises `BrokenPipeError` where rich would end the program by itself."""

    def on_broken_pipe(self) -> NoReturn:
        """The reader of stdout went away."""
        raise BrokenPipeError
