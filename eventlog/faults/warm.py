"""Processes that start in milliseconds: children of one that has imported the library and opened nothing."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # Windows has none
    from multiprocessing.context import ForkServerContext

_preloaded: Final = ["eventlog", "eventlog.faults.doing", "eventlog.faults.account"]

_starting: Final = threading.Lock()
_context: ForkServerContext | None = None


def preload(module: str) -> None:
    """Import one more thing, once for all children; before the first of them is started."""
    _preloaded.append(module)


def context() -> ForkServerContext:
    """Where children come from. POSIX only."""
    global _context  # noqa: PLW0603 - one a process, made when it is first asked for
    if _context is None:
        _context = multiprocessing.get_context("forkserver")
        _context.set_forkserver_preload(_preloaded)
    return _context


def start(target: Callable[..., None], *arguments: Any, **named: Any) -> tuple[BaseProcess, Connection]:
    """A child that runs `target(connection, *arguments)`, and our end of its connection. From any thread."""
    with _starting:
        ours, theirs = context().Pipe()
        child = context().Process(target=target, args=(theirs, *arguments), kwargs=named, daemon=True)
        child.start()
        theirs.close()
    return child, ours


def exit_code_of(child: BaseProcess) -> int:
    """Wait until a child has ended. By nothing else: an exit code is read once, and a start reads those of others."""
    multiprocessing.connection.wait([child.sentinel])
    with _starting:
        child.join()
    assert child.exitcode is not None
    return child.exitcode


def answer_of(target: Callable[..., Any], *arguments: Any, timeout_s: float = 60.0, **named: Any) -> Any:
    """What a function returns, run in a child of its own. Raises `ChildProcessError` if it ends without an answer."""
    child, connection = start(_answer, target, arguments, named)
    with connection:
        try:
            answer = connection.recv() if connection.poll(timeout_s) else None
        except EOFError:
            answer = None
    if answer is None:
        child.kill()
    exit_code = exit_code_of(child)
    if answer is None:
        raise ChildProcessError(f"{target.__name__} gave no answer: exit code {exit_code}")
    return answer


def _answer(
    connection: Connection, target: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    connection.send(target(*arguments, **named))
