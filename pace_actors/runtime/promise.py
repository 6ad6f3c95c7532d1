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
        self._callbacks: list[Callback] | None = []
        self._value: Any = None
        self._error: BaseException | None = None

    def give(self, value: Any) -> None:
        """Answer; a second answer changes nothing."""
        self._settle(value, None)

    def fail(self, error: BaseException) -> None:
        """Answer with an error."""
        self._settle(None, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        with self._guard:
            callbacks, self._callbacks = self._callbacks, None
            if callbacks is None:
                return
            self._value, self._error = value, error
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
        with self._guard:
            if self._callbacks is not None and self._done is None:
                self._done = threading.Lock()
                self._done.acquire()
            done = self._done
        if self._callbacks is not None and done is not None:
            if not done.acquire(timeout=max(0.0, timeout_s)):
                raise TimeoutError
            done.release()
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callback) -> None:
        """Call back when it is answered, at once if it is."""
        with self._guard:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback(self._value, self._error)
