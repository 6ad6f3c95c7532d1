"""From what a user gives as a model to a summariser and an extractor, and what that loads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pace_actors.errors import InvalidInput, ModelNotAllowed
from pace_actors.models import BreakingSummariser, Models, ScriptedSummariser, models_from, summariser_from
from pace_actors.models.extractive import ExtractiveSummariser
from tests.unit.models.helpers import Finder, finding


def test_nothing_is_the_extractive_summariser() -> None:
    assert isinstance(summariser_from(None), ExtractiveSummariser)


def test_an_address_is_a_chat_server_behind_a_breaker() -> None:
    summariser = summariser_from("http://127.0.0.1:8080/v1", model_name="small")
    assert isinstance(summariser, BreakingSummariser)
    assert summariser.name == "small at http://127.0.0.1:8080/v1"
    summariser.close()


def test_an_address_gives_an_extractor_too_that_says_its_version() -> None:
    models = models_from("http://127.0.0.1:8080/v1", model_name="small")
    assert models.extractor is not None
    assert models.extractor.name == "chat-facts/1 by small at http://127.0.0.1:8080/v1"
    models.close()


@pytest.mark.parametrize("model", [None, ScriptedSummariser([])])
def test_what_cannot_extract_is_no_extractor(model: ScriptedSummariser | None) -> None:
    assert models_from(model).extractor is None


def test_an_object_that_does_both_is_both_and_is_closed_once() -> None:
    both = Finder(finding())
    models = models_from(both)
    assert (models.summariser, models.extractor) == (both, both)
    models.close()
    assert both.closed == 1


def test_a_summariser_and_an_extractor_may_be_given_and_both_are_closed_whatever_the_first_does() -> None:
    first, second = Finder(finding()), Finder(finding())

    def broken() -> None:
        raise RuntimeError("cannot")

    second.close = broken  # type: ignore[method-assign]
    given = Models(first, second)
    assert models_from(given) is given
    with pytest.raises(RuntimeError):
        given.close()
    assert first.closed == 1


def test_an_address_off_the_machine_must_be_allowed() -> None:
    with pytest.raises(ModelNotAllowed):
        summariser_from("https://models.example.com/v1")


def test_a_summariser_is_itself() -> None:
    scripted = ScriptedSummariser([])
    assert summariser_from(scripted) is scripted


@pytest.mark.parametrize("model", ["", "small", 7, object(), ScriptedSummariser])
def test_anything_else_is_refused(model: Any) -> None:
    with pytest.raises(InvalidInput):
        summariser_from(model)


@pytest.mark.parametrize("statement", ["import pace_actors.models", "import pace_actors"])
def test_httpx_and_structlog_are_not_loaded_by_an_import_alone(statement: str) -> None:
    check = f"{statement}; import sys; print(sorted({{'httpx', 'httpcore', 'structlog'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
