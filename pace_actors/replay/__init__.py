"""From a log alone, without actors, models or sockets: every function returns values and prints nothing."""

from pace_actors.replay.bisect import Bisected, Flip, Predicate, bisect
from pace_actors.replay.check import Changed, Checked, Divergence, Rules, check, what_if
from pace_actors.replay.diff import Difference, diff
from pace_actors.replay.fold import Broken, Replayed, replay, replay_facts, replay_thread
from pace_actors.replay.history import History, history, read_batch
from pace_actors.replay.moments import Moment, moment_at, moments
from pace_actors.replay.places import is_place, is_receipt, place_before, place_of, places_of, receipt_of, turn_named
from pace_actors.replay.seen import Seen, seen
from pace_actors.replay.shrink import DIVERGES, Shrunk, shrink, shrink_whole
from pace_actors.replay.small import Small, holds_in, small_log
from pace_actors.replay.sources import opened
from pace_actors.replay.timeline import Timeline, timeline
from pace_actors.replay.where import predicate
from pace_actors.replay.why import Link, Why, why_context, why_fact, why_missing, why_rejected, why_turn

__all__ = [
    "DIVERGES",
    "Bisected",
    "Broken",
    "Changed",
    "Checked",
    "Difference",
    "Divergence",
    "Flip",
    "History",
    "Link",
    "Moment",
    "Predicate",
    "Replayed",
    "Rules",
    "Seen",
    "Shrunk",
    "Small",
    "Timeline",
    "Why",
    "bisect",
    "check",
    "diff",
    "history",
    "holds_in",
    "is_place",
    "is_receipt",
    "moment_at",
    "moments",
    "opened",
    "place_before",
    "place_of",
    "places_of",
    "predicate",
    "read_batch",
    "receipt_of",
    "replay",
    "replay_facts",
    "replay_thread",
    "seen",
    "shrink",
    "shrink_whole",
    "small_log",
    "timeline",
    "turn_named",
    "what_if",
    "why_context",
    "why_fact",
    "why_missing",
    "why_rejected",
    "why_turn",
]
