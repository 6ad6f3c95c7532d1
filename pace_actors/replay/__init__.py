"""From a log alone, without actors, models or sockets: every function returns values and prints nothing."""

from pace_actors.replay.check import Changed, Checked, Divergence, Rules, check, what_if
from pace_actors.replay.fold import Broken, Replayed, replay, replay_facts, replay_thread

__all__ = [
    "Broken",
    "Changed",
    "Checked",
    "Divergence",
    "Replayed",
    "Rules",
    "check",
    "replay",
    "replay_facts",
    "replay_thread",
    "what_if",
]
