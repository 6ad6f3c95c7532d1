"""Models behind one port: servers for summaries, facts and embeddings, and what needs none.

`pace_actors.models.http`, `.chat`, `.extract` and `.embed` are imported by name only: they load httpx; so is `.local`,
the embedder of `pace-actors[embed]`.
"""

from pace_actors.models.breaker import Breaker, BreakingEmbedder, BreakingExtractor, BreakingSummariser
from pace_actors.models.choose import Models, embedder_from, models_from, summariser_from
from pace_actors.models.fallback import FallbackExtractor, FallbackSummariser
from pace_actors.models.port import (
    Embedder,
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
    Vector,
)
from pace_actors.models.scripted import Later, ScriptedSummariser, join_script

__all__ = [
    "Breaker",
    "BreakingEmbedder",
    "BreakingExtractor",
    "BreakingSummariser",
    "Embedder",
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
    "Vector",
    "embedder_from",
    "join_script",
    "models_from",
    "summariser_from",
]
