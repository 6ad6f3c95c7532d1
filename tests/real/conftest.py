"""The one model server that all tests marked `llm` share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.llm_server import LlmServer


@pytest.fixture(scope="session")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlmServer]:
    """A running server. Whoever kills it starts it again."""
    server = LlmServer(tmp_path_factory.mktemp("llm") / "server.log").start()
    try:
        yield server
    finally:
        server.kill()
