"""The future behind an ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Callback = Callable[[Any, BaseException | None], None]


class Promise:
    """Both sides of an ask: a future on a bare lock, answered once."""

    __slots__ = ("_callbacks", "_done", "_error", "_guard", "_value")

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._done: threading.Lock | None = None
        self._callbacks: tuple[Callback, ...] | None = ()
        self._value: Any = None
        self._error: BaseException | None = None

    def give(self, value: Any) -> None:
        """Answer; a second answer changes nothing."""
        self.settle(value, None)

    def fail(self, error: BaseException) -> None:
        """Answer with an error."""
        self.settle(None, error)

    def settle(self, value: Any, error: BaseException | None) -> None:
        """Answer with an error, or with a value where there is none."""
        with self._guard:
            callbacks = self._callbacks
            if callbacks is None:
                return
            self._value, self._error = value, error
            self._callbacks = None  # last: whoever sees it sees the answer
            if self._done is not None:
                self._done.release()
        for callback in callbacks:
            callback(value, error)

    @property
    def is_kept(self) -> bool:
        """Whether there is an answer."""
        return self._callbacks is None

    def wait(self, timeout_s: float) -> Any:
        """The answer, or its error. Raises `TimeoutError` when the time is over."""
        if self._callbacks is not None and (done := self._gate()) is not None:
            if not done.acquire(timeout=max(0.0, timeout_s)):
                raise TimeoutError
            done.release()
        if self._error is not None:
            raise self._error
        return self._value

    def _gate(self) -> threading.Lock | None:
        """A lock that is held until there is an answer; None when there is one."""
        with self._guard:
            if self._callbacks is None:
                return None
            if self._done is None:
                self._done = threading.Lock()
                self._done.acquire()
            return self._done

    def then(self, callback: Callback) -> None:
        """Call back when it is answered, at once if it is."""
        with self._guard:
            if self._callbacks is not None:
                self._callbacks = (*self._callbacks, callback)
                return
        callback(self._value, self._error)
