"""Models that write summaries, behind one port: a chat server, an extractive one without a model, a scripted one.

`pace_actors.models.http` and `.chat` are imported by name only: they load httpx.
"""

from pace_actors.models.breaker import Breaker, BreakingSummariser
from pace_actors.models.choose import summariser_from
from pace_actors.models.fallback import FallbackSummariser
from pace_actors.models.port import FoldReply, FoldTask, FoldTurn, ModelFailure, Summariser
from pace_actors.models.scripted import Later, ScriptedSummariser, join_script

__all__ = [
    "Breaker",
    "BreakingSummariser",
    "FallbackSummariser",
    "FoldReply",
    "FoldTask",
    "FoldTurn",
    "Later",
    "ModelFailure",
    "ScriptedSummariser",
    "Summariser",
    "join_script",
    "summariser_from",
]
