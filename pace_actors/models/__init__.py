"""Models behind one port: a chat server for summaries and facts, and summarisers that need none.

`pace_actors.models.http`, `.chat` and `.extract` are imported by name only: they load httpx.
"""

from pace_actors.models.breaker import Breaker, BreakingExtractor, BreakingSummariser
from pace_actors.models.choose import Models, models_from, summariser_from
from pace_actors.models.fallback import FallbackExtractor, FallbackSummariser
from pace_actors.models.port import (
    ExtractItem,
    Extractor,
    ExtractReply,
    ExtractTask,
    FoldReply,
    FoldTask,
    FoldTurn,
    ModelFailure,
    Summariser,
    Unreadable,
)
from pace_actors.models.scripted import Later, ScriptedSummariser, join_script

__all__ = [
    "Breaker",
    "BreakingExtractor",
    "BreakingSummariser",
    "ExtractItem",
    "ExtractReply",
    "ExtractTask",
    "Extractor",
    "FallbackExtractor",
    "FallbackSummariser",
    "FoldReply",
    "FoldTask",
    "FoldTurn",
    "Later",
    "ModelFailure",
    "Models",
    "ScriptedSummariser",
    "Summariser",
    "Unreadable",
    "join_script",
    "models_from",
    "summariser_from",
]
