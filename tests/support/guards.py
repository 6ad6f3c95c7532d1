"""What no test may do: reach another machine, or touch the directories of whoever runs it."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HOME_VARIABLES = (
    "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
)  # fmt: skip


def is_loopback(host: object) -> bool:
    """Whether a host, as sockets take it, is certainly this machine."""
    if isinstance(host, bytes | bytearray):
        host = host.decode("ascii", "replace")
    if host is None or host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


class SocketGuard:
    """Refuses every address that is not loopback, and remembers it: code under test may swallow the refusal."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def check(self, host: object) -> None:
        """Raise AssertionError unless the host is this machine."""
        if not is_loopback(host):
            self.refused.append(str(host))
            raise AssertionError(f"a test tried to reach {host!r}; only this machine is allowed")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Stand before the ways by which a socket names its peer."""
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, self._before_address(getattr(socket.socket, name)))
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
            patch.setattr(socket, name, self._before_host(getattr(socket, name)))

    def _before_address(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(this: socket.socket, *args: Any) -> Any:
            if this.family in (socket.AF_INET, socket.AF_INET6):
                self.check(args[-1][0])
            return real(this, *args)

        return guarded

    def _before_host(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
            self.check(host)
            return real(host, *args, **kwargs)

        return guarded


def move_home(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Point every variable that names a user's directory below `home`; forget what the user set for this library."""
    home.mkdir(parents=True)
    for name in HOME_VARIABLES:
        patch.setenv(name, str(home))
    for name in os.environ:
        if name.startswith("PACE_") and not name.startswith("PACE_TEST_"):
            patch.delenv(name)
