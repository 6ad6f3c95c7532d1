"""D10 and D6 at full size: records of strangers, and bytes here and there of a large log. See `make damage`."""

from __future__ import annotations

import os
import sys

import pytest

from tests.damage.runs import Runs, scratch_place
from tests.soak.support import soak
from tests.support.skips import LINUX_ONLY

MUTATIONS = 2000
EVENTS = 400_000
SAMPLE = 2000

on_linux = pytest.mark.skipif(sys.platform != "linux", reason=LINUX_ONLY)


@soak
@on_linux
def test_records_of_strangers_are_told_or_read_within_bounds() -> None:
    """Nesting 100,000 deep, lengths of 2 GB, every tag, wrong types, cut off, and thousands that chance has made."""
    with scratch_place() as scratch:
        runs = Runs(scratch, os.cpu_count() or 1, print)
        runs.hostile(1, MUTATIONS)
    assert runs.failed == 0
    assert runs.variants > 8000


@soak
@on_linux
def test_bytes_of_a_large_log() -> None:
    with scratch_place() as scratch:
        runs = Runs(scratch, os.cpu_count() or 1, print)
        runs.large(EVENTS, SAMPLE, 1)
    assert runs.failed == 0
    assert runs.variants == SAMPLE
