"""From a log alone, without actors, models or sockets: every function returns values and prints nothing."""

from pace_actors.replay.bisect import Bisected, Flip, Predicate, bisect
from pace_actors.replay.check import Changed, Checked, Divergence, Rules, check, what_if
from pace_actors.replay.fold import Broken, Replayed, replay, replay_facts, replay_thread
from pace_actors.replay.moments import Moment, moment_at, moments
from pace_actors.replay.where import predicate

__all__ = [
    "Bisected",
    "Broken",
    "Changed",
    "Checked",
    "Divergence",
    "Flip",
    "Moment",
    "Predicate",
    "Replayed",
    "Rules",
    "bisect",
    "check",
    "moment_at",
    "moments",
    "predicate",
    "replay",
    "replay_facts",
    "replay_thread",
    "what_if",
]
