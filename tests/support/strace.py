"""Whether programs can be traced here; where not, tests say so, and under CI=true that fails the run."""

from __future__ import annotations

import pytest

from eventlog.faults import trace
from tests.support.skips import LINUX_ONLY, STRACE_ABSENT, STRACE_REFUSED

_refused = trace.why_not()
UNTRACED = next(
    (reason for reason in (LINUX_ONLY, STRACE_ABSENT, STRACE_REFUSED) if _refused.startswith(reason)),
    "?" if _refused else "",
)
"""The reason of a skip; empty where programs can be traced."""
needs_strace = pytest.mark.skipif(bool(UNTRACED), reason=UNTRACED or "?")
