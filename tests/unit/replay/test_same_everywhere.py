"""The same log gives the same hash and the same answers, wherever and however it is replayed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import eventlog
from pace_actors.domain.context import Receipt
from pace_actors.events import REGISTRY
from pace_actors.replay import check, replay
from tests.support.cli import environment
from tests.support.pythons import needs_other_python, other_pythons

SCRIPT = """
import sys
from pace_actors.replay import bisect, check, moment_at, opened, predicate, replay, why_turn
from pace_actors.values import ThreadKey
with opened(sys.argv[1]) as log:
    key = ThreadKey("ada", "kitchen")
    print(replay(log).hash, check(log, every=True).divergence_count)
    print(*(flip.batch.position for flip in bisect(log, key, predicate('context contains "Porto"'), every=True).flips))
    print(moment_at(log, key, log.head()).context("what do I like?").receipt.hash)
    print([(link.position, link.rule) for link in why_turn(log, key, 4).links])
"""
ROOT = Path(__file__).resolve().parents[3]
WORLDS = {
    "as it is": {},
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "hash seed 4711": {"PYTHONHASHSEED": "4711"},
    "far east": {"TZ": "Pacific/Kiritimati"},
    "far west": {"TZ": "Pacific/Marquesas"},
    "German": {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"},
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0"},
    "settings in the environment": {"PACE_WINDOW": "8", "PACE_IDLE_MINUTES": "1"},
    "a user's optimisations": {"PYTHONOPTIMIZE": "1"},
}


def told(python: str, place: Path, cwd: Path, **changes: str) -> str:
    """What the script says of a log, in a process of its own."""
    done = subprocess.run(
        [python, "-c", SCRIPT, str(place)],
        cwd=cwd,
        env={**environment(), "PYTHONPATH": str(ROOT), **changes},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_a_log_is_the_same_in_every_world(talk: tuple[Path, list[Receipt]], tmp_path: Path) -> None:
    """Goal: no hash seed, zone, locale, directory or setting changes what a log says. Method: a process for each."""
    place = talk[0].resolve()
    answers = {name: told(sys.executable, place, ROOT, **changes) for name, changes in WORLDS.items()}
    answers["elsewhere"] = told(sys.executable, place, tmp_path)
    assert set(answers.values()) == {answers["as it is"]}, answers
    with eventlog.open(place, REGISTRY, readonly=True) as log:
        assert answers["as it is"].split()[:2] == [replay(log).hash, str(check(log).divergence_count)]


@needs_other_python
def test_a_log_is_the_same_in_other_pythons(talk: tuple[Path, list[Receipt]], tmp_path: Path) -> None:
    answers = {python: told(python, talk[0].resolve(), tmp_path) for python in [sys.executable, *other_pythons()]}
    assert len(set(answers.values())) == 1, answers
