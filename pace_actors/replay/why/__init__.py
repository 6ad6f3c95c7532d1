"""From a complaint to the events behind it, and the rule that decided."""

from pace_actors.replay.why.answers import why_rejected
from pace_actors.replay.why.chain import Link, Why
from pace_actors.replay.why.contexts import why_context
from pace_actors.replay.why.facts import why_fact
from pace_actors.replay.why.missing import why_missing
from pace_actors.replay.why.turns import why_turn

__all__ = ["Link", "Why", "why_context", "why_fact", "why_missing", "why_rejected", "why_turn"]
