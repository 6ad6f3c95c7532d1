"""Is an answer a summary? The order of the rules is part of them: the first that fails is the reason (T13, T14)."""

from __future__ import annotations

from pace_actors.domain.state import ThreadState
from pace_actors.events import AnswerArrived, SummaryAccepted, SummaryRejected

SHORT_TEXT_CHARS = 400
"""A text up to this length may be longer than its input."""


def refuse_or_accept(state: ThreadState, heard: AnswerArrived) -> SummaryAccepted | SummaryRejected:
    """The one decision on an answer (T13)."""
    if not state.live or heard.session != state.session:
        return SummaryRejected(reason="session_ended")
    if heard.generation != state.generation:
        return SummaryRejected(reason="generation")
    request = state.open_request(heard.version)
    if request is None:
        return SummaryRejected(reason="duplicate")
    covers = request.covers
    if heard.version <= state.accepted_version or covers.last <= state.covered or covers.first > state.covered + 1:
        return SummaryRejected(reason="stale")
    if heard.failure:
        return SummaryRejected(reason=heard.failure)
    return judge_text(heard, state.settings.summary_sentences)


def judge_text(heard: AnswerArrived, sentences: int) -> SummaryAccepted | SummaryRejected:
    """Whether the cleaned text can stand as a summary, and how much of it (T14). Compares prepared numbers only."""
    if heard.blank or not heard.cleaned_chars:
        return SummaryRejected(reason="empty")
    ends = heard.sentence_ends
    if heard.finish == "length" and not heard.last_whole:
        ends = ends[:-1]
    if heard.finish == "broken" or not ends:
        return SummaryRejected(reason="cut_off")
    too_long = heard.cleaned_chars > max(heard.input_chars, SHORT_TEXT_CHARS)
    if heard.by == "model" and (heard.echo or heard.refusal or heard.error_text or too_long):
        return SummaryRejected(reason="not_a_summary")
    return SummaryAccepted(chars=_cut(heard, ends[:sentences]))


def _cut(heard: AnswerArrived, ends: tuple[int, ...]) -> int:
    """Whole sentences within the bound; a word end where even one sentence is too long."""
    whole = [end for end in ends if end <= heard.limit]
    if whole:
        return whole[-1]
    return heard.word_end or min(heard.limit, ends[0])
