"""Hands variants to worker processes, and notices when one dies, takes too long, or says nothing any more."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.damage.variants import Outcome, Variant

ROOT: Final = Path(__file__).resolve().parents[2]
SILENT_S_MAX: Final = 600.0
"""A worker ends itself long before; this is for one that cannot."""


class Worker:
    """A worker process, started when it is needed and again when it has died."""

    def __init__(self, mode: str, source: Path, scratch: Path) -> None:
        self._arguments = [sys.executable, "-m", "tests.damage.worker", mode, str(source)]
        self._scratch = scratch
        self._process: subprocess.Popen[bytes] | None = None
        self._place: Path | None = None
        self._decode = msgspec.json.Decoder(Outcome).decode

    def run(self, variant: Variant) -> Outcome:
        """What came of a variant, also where the process died of it."""
        if self._process is None:
            self._start()
        outcome, step = self._ask(variant)
        if outcome is not None:
            return outcome
        died = self._ended()
        outcome = Outcome(variant.number, variant.kind, {step: died})
        if step != "check":
            checked = self.run(msgspec.structs.replace(variant, steps="check"))
            outcome.said["check"] = checked.said["check"]
            outcome.detail = f"{step}: {died}; {checked.detail}"
        return outcome

    def _start(self) -> None:
        self._place = Path(tempfile.mkdtemp(dir=self._scratch))
        self._process = subprocess.Popen(
            [*self._arguments, str(self._place)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == b"step ready\n", "a worker does not start"

    def _ask(self, variant: Variant) -> tuple[Outcome | None, str]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        step = "start"
        guard = threading.Timer(SILENT_S_MAX, process.kill)
        guard.start()
        try:
            process.stdin.write(msgspec.json.encode(variant) + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                word, _, rest = line.partition(b" ")
                if word == b"done":
                    return self._decode(rest), step
                step = rest.decode().strip()
        except BrokenPipeError:
            pass
        finally:
            guard.cancel()
        return None, step

    def _ended(self) -> str:
        """Clear up after a worker that has died, and say of what."""
        assert self._process is not None
        returned = self._process.wait()
        self.close()
        if returned in {-signal.SIGPROF, -signal.SIGKILL}:
            return "slow"
        return f"died of {signal.Signals(-returned).name}" if returned < 0 else f"died with {returned}"

    def close(self) -> None:
        """End the process, and clear up."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)
        self._process = self._place = None


def run_all(
    variants: Iterable[Variant], mode: str, source: Path, scratch: Path, workers: int, until: float
) -> Iterator[Outcome]:
    """Outcomes as they come. Ends early when the time (of `time.monotonic`) is over."""
    waiting = iter(variants)
    lock = threading.Lock()
    done: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        worker = Worker(mode, source, scratch)
        try:
            while time.monotonic() < until:
                with lock:
                    variant = next(waiting, None)
                if variant is None:
                    break
                done.put(worker.run(variant))
        except BaseException as error:  # noqa: BLE001 - raised where somebody sees it
            done.put(error)
        finally:
            worker.close()
            done.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    left = workers
    while left:
        item = done.get()
        if item is None:
            left -= 1
        elif isinstance(item, BaseException):
            raise item
        else:
            yield item
    for thread in threads:
        thread.join()
