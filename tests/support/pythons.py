"""Other interpreters that tests compare this one with, where somebody names them."""

from __future__ import annotations

import os

import pytest

from tests.support.skips import NO_OTHER_PYTHON

NAMED_IN = "PACE_PYTHONS"
"""In the environment: interpreters that have the package's libraries, with colons between them."""


def other_pythons() -> list[str]:
    """Their paths; empty where nobody names one."""
    return [path for path in os.environ.get(NAMED_IN, "").split(":") if path]


needs_other_python = pytest.mark.skipif(not other_pythons(), reason=NO_OTHER_PYTHON)
