"""FactStoreActor: what is known of one user. Candidates, statements, wishes to forget become inputs; rules decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Final

from eventlog import Appended
from pace_actors import messages as m
from pace_actors.actors.facts_log import FactsLog, outcome_of
from pace_actors.actors.services import Services
from pace_actors.actors.stream_actor import StreamActor, done, give
from pace_actors.domain.facts import TOMBSTONE, admit, decide, evolve
from pace_actors.domain.facts_state import FactsState
from pace_actors.domain.keys import delivery_key, erased_key, note_key, statement_key, switch_key
from pace_actors.domain.prepare import redacted_detail
from pace_actors.domain.prepare_facts import (
    PREPARE_FACTS_VERSION,
    SALT_BYTES,
    extracted_value,
    prepare_candidate,
    prepare_note,
    secret_in,
)
from pace_actors.domain.snapshots import FACTS, Snapshots
from pace_actors.domain.sources import NOTES, is_off
from pace_actors.errors import ActorUnavailable, PaceError, SourceOff, StatementConflict
from pace_actors.events import (
    CandidatesExtracted,
    FactDecision,
    FactForgotten,
    FactInput,
    FactRejected,
    FactsOpened,
    FactStated,
    FactsUsed,
    ForgetAsked,
    SourcesErased,
    SourceSwitched,
)
from pace_actors.runtime.port import Reply
from pace_actors.values import MINUTE, Candidate, FactText, Microseconds, UserKey

USES_EVERY: Final[Microseconds] = MINUTE
"""How often it is written which facts contexts have shown."""
USES_MAX: Final = 1000


class FactStoreActor(StreamActor[FactsState]):
    """The actor of one user's facts and notes."""

    what: ClassVar[str] = "store of facts"
    snapshots: ClassVar[Snapshots[FactsState]] = FACTS

    def __init__(self, key: UserKey, services: Services) -> None:
        super().__init__(key.stream, services, services.logger.bind(user=key.user))
        self._key = key
        self._log = FactsLog(services.log, key.stream)
        self._used: dict[int, None] = {}
        """Facts that contexts have shown since that was last written. Lost with a crash: they only order evictions."""

    # --- the stream ---------------------------------------------------------------------------------------------------

    def _read_state(self) -> FactsState:
        return self._log.state(self._logger)

    def _evolve(self, state: FactsState, heard: FactInput, decided: Sequence[FactDecision]) -> FactsState:
        return evolve(state, heard, decided)

    def _built(self) -> None:
        self._snapshot_version = self._log.snapshot_version

    def _fall_asleep(self, *, surplus: bool) -> bool:
        return self._services.sleep_facts(self._key, self._me, surplus)

    def _is_crowded(self) -> bool:
        return self._services.facts_crowded()

    def _note(self, message: m.Message, heard: FactInput, decided: Sequence[FactDecision]) -> None:
        figures, correlation = self._metrics.facts, getattr(message, "correlation", "")
        if isinstance(heard, CandidatesExtracted):
            figures.extractions[f"{heard.extractor}: {heard.outcome}"] += 1
            self._logger.debug(
                "facts_extracted",
                extractor=heard.extractor,
                outcome=heard.outcome,
                candidates=len(heard.candidates),
                turn=heard.turn,
                correlation=correlation,
            )
        for decision in decided:
            name = type(decision).__name__
            figures.decisions[f"{name}: {decision.reason}" if isinstance(decision, FactRejected) else name] += 1
            self._logger.debug("fact_decided", decision=name, correlation=correlation)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _handle(self, message: m.Message, reply: Reply | None) -> None:
        self._take_erasures(message)
        match message:
            case m.EraseSources():
                self._erase_sources(message, reply)
            case m.ViewFacts():
                give(reply, self._view())
            case m.DeliverCandidates():
                self._take_candidates(message, reply)
            case m.StateFact():
                self._state_fact(message, reply)
            case m.ForgetFacts():
                self._forget(message, reply)
            case m.TakeNote():
                self._take_note(message, reply)
            case m.SwitchSource():
                self._switch(message, reply)
            case m.TimerOver(timer="sleep"):
                self._sleep_if_possible()
            case m.TimerOver(timer="rest"):
                self._rest()
            case _:
                raise TypeError(f"a {self.what} does not understand {type(message).__name__}")

    def _view(self) -> m.FactsView:
        return m.FactsView(key=self._key, state=self._ahead, durable_version=self._durable_version)

    def _take_candidates(self, message: m.DeliverCandidates, reply: Reply | None) -> None:
        key, name = delivery_key(message.source, message.number), f"turn {message.source}/{message.number}"
        if self._is_known(message, name, b"", reply, lambda: self._first_delivery(key)):
            return
        if self._log.is_erased(message.source):
            give(reply, m.Done(changed=False, stream_version=self._ahead.version))
            return
        now = self._host.now()
        self._open(message, now)
        candidates, echoed = self._candidates(message)
        self._used |= dict.fromkeys(message.shown)
        detail, masked = redacted_detail(message.detail, self._services.policy)
        heard = CandidatesExtracted(
            at=now,
            source=message.source,
            turn=message.turn,
            extractor=message.extractor,
            outcome="none" if message.outcome == "ok" and not candidates else message.outcome,
            candidates=candidates,
            malformed=message.malformed,
            echoed=echoed,
            active_max=self._services.facts_max,
            detail=detail,
            model=message.model,
            latency_ms=message.latency_ms,
            masked=masked,
            prepared=PREPARE_FACTS_VERSION,
        )
        self._write_uses(message, now, len(candidates))
        decided = decide(self._ahead, heard)
        self._append(message, admit(heard, decided), decided, done, reply, key=key, turn_id=name)

    def _candidates(self, message: m.DeliverCandidates) -> tuple[tuple[Candidate, ...], int]:
        """Each triple once; without what only repeats what the turn's context had shown."""
        shown = {row.triple for row in self._ahead.rows if row.fact in message.shown} if message.may_echo else set()
        found: dict[bytes, Candidate] = {}
        secrets: list[Candidate] = []
        echoed = 0
        for item in message.items:
            candidate = self._prepared(item, message.learned_at)
            if candidate.secret:
                secrets.append(candidate)
            elif candidate.triple in shown:
                echoed += 1
            elif candidate.triple not in found or candidate.confidence_milli > found[candidate.triple].confidence_milli:
                found[candidate.triple] = candidate
        return (*found.values(), *secrets), echoed

    def _prepared(self, item: m.Item, learned_at: Microseconds) -> Candidate:
        return prepare_candidate(
            subject=item.subject,
            predicate=item.predicate,
            value=extracted_value(item.value),
            confidence_milli=item.confidence_milli,
            topics=item.topics,
            learned_at=learned_at,
            salt=self._ahead.salt,
            multi_valued=self._services.multi_valued,
        )

    def _first_delivery(self, key: bytes) -> m.Done | None:
        return m.Done(changed=False, stream_version=self._ahead.version) if self._log.has(key) else None

    def _state_fact(self, message: m.StateFact, reply: Reply | None) -> None:
        key = statement_key(message.statement_id) if message.statement_id else None
        digest = _digest_of_statement(message)
        name = message.statement_id
        if key is not None and self._is_known(
            message, name, digest, reply, lambda: self._log.first_statement(name, digest)
        ):
            return
        self._open(message, message.at)
        heard = FactStated(
            at=message.at,
            candidate=prepare_candidate(
                subject=message.subject,
                predicate=message.predicate,
                value=message.value,
                confidence_milli=message.confidence_milli,
                topics=message.topics,
                learned_at=message.learned_at or message.at,
                valid_from=message.valid_from,
                expires_at=message.expires_at,
                salt=self._ahead.salt,
                multi_valued=self._services.multi_valued,
            ),
            origin=message.origin,
            corrects=message.corrects,
            active_max=self._services.facts_max,
            prepared=PREPARE_FACTS_VERSION,
        )
        self._write_uses(message, message.at, 1)
        decided = decide(self._ahead, heard)
        version = self._ahead.version + 1
        outcome = outcome_of(decided, version, 0)

        def answer(appended: Appended) -> m.Stated:
            last = appended.first_position + appended.count - 1
            return m.Stated(fact=outcome.fact, outcome=outcome.outcome, reason=outcome.reason, position=last)

        self._append(message, admit(heard, decided), decided, answer, reply, key=key, turn_id=name, digest=digest)

    def _forget(self, message: m.ForgetFacts, reply: Reply | None) -> None:
        if not message.everything and not any(self._ahead.row(fact) for fact in message.facts):
            give(reply, m.Forgotten(facts=(), sources=()))
            return
        self._open(message, message.at)
        heard = ForgetAsked(
            at=message.at,
            facts=message.facts,
            everything=message.everything,
            fence=self._log.head() if message.everything else 0,
            until=message.at + TOMBSTONE,
            keep_turns=message.keep_turns,
        )
        decided = decide(self._ahead, heard)
        gone = [decision for decision in decided if isinstance(decision, FactForgotten)]
        facts = tuple(decision.fact for decision in gone)
        sources = tuple(sorted({source for decision in gone for source in decision.sources}))

        def answer(appended: Appended) -> m.Forgotten:
            last = appended.first_position + appended.count - 1
            return m.Forgotten(facts=facts, sources=sources, first=appended.first_position, position=last)

        self._append(message, heard, decided, answer, reply)

    def _take_erasures(self, message: m.Message) -> None:
        """Nothing that an erased thread has brought is shown, wherever the EraserActor is. A view says if it cannot."""
        for fence in self._services.erasures.of(self._key.user):
            try:
                self._erase_sources(m.EraseSources(fence=fence), None)
            except PaceError as error:
                if isinstance(message, m.ViewFacts):
                    raise ActorUnavailable(str(error), actor=self.what, failures=0) from error

    def _erase_sources(self, message: m.EraseSources, reply: Reply | None) -> None:
        """What an erased thread takes along. Behind it, nothing in the stream comes from that thread."""
        fence, name, erasures, user = message.fence, f"erasure {message.fence}", self._services.erasures, self._key.user
        if not self._ahead.version:
            erasures.done(user, fence)
            give(reply, m.SourcesGone())
            return

        def first() -> m.SourcesGone | None:
            gone = self._log.first_erasure(fence)
            if gone is not None:
                erasures.done(user, fence)
            return gone

        if self._is_known(message, name, b"", reply, first):
            return
        now = self._host.now()
        going = self._log.going_with(fence, self._ahead.rows, now)
        if len(self._appends) and going.wordless:
            raise ActorUnavailable("other words of a fact are on their way; ask again", actor=self.what, failures=0)
        for each in going.reworded:
            key = self._log.next_rewording(each.fact)
            self._append(message, each, decide(self._ahead, each), done, None, key=key)
        heard = SourcesErased(at=now, fence=fence, facts=going.facts, until=now + TOMBSTONE)
        decided = decide(self._ahead, heard)
        facts = tuple(decision.fact for decision in decided if isinstance(decision, FactForgotten))
        reworded, version = tuple(each.fact for each in going.reworded), self._ahead.version + 1

        def answer(_: Appended) -> m.SourcesGone:
            erasures.done(user, fence)
            return m.SourcesGone(facts=facts, reworded=reworded, version=version)

        self._append(message, heard, decided, answer, reply, key=erased_key(fence), turn_id=name)

    def _switch(self, message: m.SwitchSource, reply: Reply | None) -> None:
        switches = self._ahead.switches
        if is_off(switches, message.source) != message.on:
            give(reply, m.Done(changed=False, stream_version=self._ahead.version))
            return
        self._open(message, message.at)
        heard = SourceSwitched(at=message.at, source=message.source, on=message.on, fence=self._log.head())
        self._append(message, heard, decide(self._ahead, heard), done, reply, key=switch_key(len(switches) + 1))

    def _take_note(self, message: m.TakeNote, reply: Reply | None) -> None:
        if is_off(self._ahead.switches, NOTES):
            raise SourceOff(f"{NOTES} are switched off for this user; nothing was kept", source=NOTES)
        heard = prepare_note(
            message.text,
            topics=message.topics,
            thread=message.thread,
            at=message.at,
            policy=self._services.policy,
        )
        key = note_key(message.note_id) if message.note_id else None
        digest = _digest([heard.text, list(heard.topics), *([heard.thread] if heard.thread else [])])
        name = message.note_id
        if key is not None and self._is_known(message, name, digest, reply, lambda: self._log.first_note(name, digest)):
            return
        self._open(message, message.at)
        note = self._ahead.version + 1

        def answer(appended: Appended) -> m.NoteKept:
            return m.NoteKept(note=note, position=appended.first_position)

        decided = decide(self._ahead, heard)
        self._append(message, heard, decided, answer, reply, key=key, turn_id=name, digest=digest)

    # --- what goes before an append -----------------------------------------------------------------------------------

    def _is_known(
        self, message: m.Message, name: str, digest: bytes, reply: Reply | None, first: Callable[[], Any]
    ) -> bool:
        """Whether this was appended before, or is on its way: then its first outcome is the answer."""
        under_way = self._appends.find(name, type(message))
        if under_way is not None:
            if under_way.digest != digest:
                raise StatementConflict(f"{name!r} was used before for something else", statement_id=name)
            if reply is not None:
                under_way.replies.append(reply)
            return True
        outcome = first()
        if outcome is not None:
            give(reply, outcome)
        return outcome is not None

    def _open(self, message: m.Message, at: Microseconds) -> None:
        """The first event of a user's stream is its salt."""
        if not self._ahead.version:
            salt = blake2b(self._host.new_id(), digest_size=SALT_BYTES).digest()
            self._append(message, FactsOpened(at=at, salt=salt), (), done, None)

    def _write_uses(self, message: m.Message, at: Microseconds, coming: int) -> None:
        """At most once a minute, and always before one may have to go because it was not used."""
        used = tuple(fact for fact in self._used if self._ahead.row(fact) is not None)
        self._used = dict.fromkeys(used)
        crowded = len(self._ahead.active) + coming > self._services.facts_max
        if used and (crowded or len(used) > USES_MAX or at - self._ahead.used_noted_at >= USES_EVERY):
            heard = FactsUsed(at=at, facts=used)
            self._append(message, heard, decide(self._ahead, heard), done, None)
            self._used.clear()


def _digest_of_statement(message: m.StateFact) -> bytes:
    """Equal for equal content, whenever it was said. A secret counts as its kind: no digest of one is made."""
    words = [message.subject, message.predicate, message.value, list(message.topics)]
    said = FactText(
        subject=message.subject, predicate=message.predicate, value=message.value, topics=tuple(message.topics)
    )
    secret = secret_in(said)
    return _digest([
        [secret] if secret else words,
        message.confidence_milli,
        message.valid_from,
        message.expires_at,
        message.learned_at,
        message.origin,
        message.corrects,
    ])  # fmt: skip


def _digest(content: list[Any]) -> bytes:
    """16 bytes."""
    canonical = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()
    return blake2b(canonical, digest_size=16, person=b"pace fact 1").digest()
