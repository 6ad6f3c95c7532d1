"""What every index must do. A subclass gives `open_index`, which opens one index again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pace_actors.recall import analysis
from pace_actors.recall.entries import cut
from pace_actors.recall.port import Answer, Entry, IndexClosed, Query, SearchIndex
from pace_actors.values import SECOND

OpenIndex = Callable[[], SearchIndex]
NOON = 1_700_049_600 * SECOND
"""2023-11-15 12:00, a Wednesday."""
DAY = 86_400 * SECOND

HOSTILE = [
    '"', "AND OR (", "C:\\repo", "a:b:c", "the of and", "*", "+x -y", "[a TO b]", "~2", "\\", "(((", "title:",
    "\x00", "\ud800", "🧑‍🧑‍🧒", "", " ", "\u200d", "e\u0301" * 50, "IN [", "^5", "a" * 70_000, "/.*/", "{}", "'; --",
]  # fmt: skip

SENTENCES = {
    "ja": ("明日は図書館で茶道の本を借りるつもりです。", "茶道"),
    "ja, one character": ("庭の猫がまた逃げた。", "猫"),
    "zh": ("他每天早上在公园里打太极拳。", "太极"),
    "ko": ("우리는 지난주에 제주도에서 한라산을 올랐습니다.", "한라산"),
    "th": ("พรุ่งนี้ฉันจะไปซื้อต้นไม้ที่ตลาดใกล้บ้าน", "ต้นไม้"),
}
OTHERS = [
    "今日は雨が降っているので家で映画を見ます。",
    "来月は京都で友達の結婚式があります。",
    "犬と海岸を散歩しました。",
    "我昨天在超市买了很多水果和蔬菜。",
    "这本书的作者住在北京的郊区。",
    "我们周末去看电影吧。",
    "저는 매일 아침 커피를 마시면서 신문을 읽어요.",
    "다음 달에 서울에서 회의가 있습니다.",
    "고양이가 창문 옆에서 자고 있어요.",
    "เมื่อวานฝนตกหนักมากจนน้ำท่วมถนน",
    "เขาชอบกินข้าวผัดกับไข่ดาวทุกวัน",
    "โรงเรียนปิดเทอมเดือนหน้า",
    "The dentist is on Thursday at nine.",
    "My sister keeps bees on the roof.",
    "We painted the kitchen yellow.",
]


def entry(id_: str, text: str, **fields: Any) -> Entry:
    """A note, if nothing else is said."""
    given: dict[str, Any] = {"id": id_, "kind": "note", "source": "notes", "text": text, "created_at": NOON} | fields
    return Entry(**given)


def turn(number: int, user: str, assistant: str = "", **fields: Any) -> list[Entry]:
    """Both messages of a turn."""
    said = {"kind": "turn", "source": "pace_history", "thread": "t", "turn": number} | fields
    made = [entry(f"t/{number}/user", user, part="user", **said)] if user else []
    return made + ([entry(f"t/{number}/assistant", assistant, part="assistant", **said)] if assistant else [])


def ids(answer: Answer) -> list[str]:
    return [hit.entry.id for hit in answer.hits]


def ask(index: SearchIndex, text: str, **fields: Any) -> list[str]:
    return ids(index.search(Query(text=text, **fields)))


class Contract:
    """Each test is run with everything pending, with everything committed, and after the index was opened again."""

    keeps = True
    """Whether entries outlive the index."""

    @pytest.fixture
    def open_index(self) -> OpenIndex:
        raise NotImplementedError("give a fixture `open_index`")

    @pytest.fixture(params=["pending", "committed", "opened again"])
    def filled(self, request: pytest.FixtureRequest, open_index: OpenIndex) -> Callable[..., SearchIndex]:
        """Give an index that holds these entries."""
        if request.param == "opened again" and not self.keeps:
            request.param = "committed"

        def filled(entries: Iterable[Entry]) -> SearchIndex:
            index = open_index()
            index.add(entries)
            if request.param != "pending":
                assert index.commit(7) == 7
            if request.param == "opened again":
                index.close()
                index = open_index()
            return index

        return filled

    # --- what is stored -----------------------------------------------------------------------------------------------

    def test_a_new_index_is_empty_and_wants_everything(self, open_index: OpenIndex) -> None:
        index = open_index()
        assert (len(index), index.position, index.start(), index.pending) == (0, 0, 0, 0)
        assert index.search(Query(text="anything")) == Answer(hits=(), position=0)

    def test_an_entry_is_found_at_once_and_comes_back_as_it_was(self, filled: Callable[..., SearchIndex]) -> None:
        whole = entry(
            "1", "The dentist moved to Thursday.", owner="ada", title="Dentist", topics=("health",), around="When?",
            sensitive=True, expires_at=NOON + DAY, position=41, updated_at=NOON, dated="Wednesday 15 November 2023",
        )  # fmt: skip
        index = filled([whole])
        (hit,) = index.search(Query(text="dentist", owner="ada", include_sensitive=True)).hits
        assert hit.entry == whole
        assert hit.terms == ("dentist",)
        assert hit.score == pytest.approx(sum(hit.parts.values()))
        assert hit.snippet == "The dentist moved to Thursday."
        assert "dentist" in hit.explanation
        assert index.get(["1", "2"], owner="ada") == {"1": whole}
        assert index.get(["1"], owner="bob") == {}
        assert len(index) == 1

    def test_positions_and_pending_are_told(self, open_index: OpenIndex) -> None:
        index = open_index()
        index.add([entry("1", "tulips"), entry("2", "roses")])
        answer = index.search(Query(text="tulips"))
        assert (answer.position, answer.pending, index.pending) == (0, 2, 2)
        assert index.commit(9) == 9
        answer = index.search(Query(text="tulips"))
        assert (answer.position, answer.pending, index.position, index.start()) == (9, 0, 9, 9)
        assert index.commit(3) == 9, "it never goes back"

    def test_the_same_id_replaces_also_across_kinds(self, open_index: OpenIndex) -> None:
        index = open_index()
        for number, kind in enumerate(("note", "document", "turn", "fact")):
            index.add([entry("1", f"tulips {number}", kind=kind)])
            assert [hit.entry.text for hit in index.search(Query(text="tulips")).hits] == [f"tulips {number}"]
            index.commit(number + 1)
            assert [hit.entry.text for hit in index.search(Query(text="tulips")).hits] == [f"tulips {number}"]
            assert len(index) == 1
        assert ask(index, "1") == []

    def test_deleted_entries_are_gone(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled([entry("1", "red tulips"), entry("2", "white tulips")])
        index.delete(["1", "unknown"])
        for position in (8, 9):
            assert ask(index, "tulips") == ["2"]
            assert index.get(["1"], owner="default") == {}
            assert len(index) == 1
            index.commit(position)
        index.add([entry("1", "red tulips")])
        assert sorted(ask(index, "tulips")) == ["1", "2"], "an id may come back"

    def test_r4_a_fact_updated_200_times_is_one_hit_with_the_newest_value(self, open_index: OpenIndex) -> None:
        index = open_index()
        index.add([entry("other", "user likes tea", kind="fact", source="episodic_memory")])
        for value in range(200):
            index.add([entry("fact", f"user weighs {value} kilograms", kind="fact", source="episodic_memory")])
            if value % 25 == 24:
                index.commit(value)
            hits = index.search(Query(text="how many kilograms does the user weigh?")).hits
            assert [hit.entry.text for hit in hits if hit.entry.id == "fact"] == [f"user weighs {value} kilograms"]

    def test_what_is_discarded_is_gone_and_the_index_wants_everything_again(
        self, filled: Callable[..., SearchIndex]
    ) -> None:
        index = filled([entry("1", "tulips"), *turn(1, "tulips", "roses")])
        index.discard()
        assert (len(index), index.position, index.start(), index.pending) == (0, 0, 0, 0)
        assert ask(index, "tulips") == []
        index.add([entry("2", "tulips")])
        assert index.commit(3) == 3
        assert ask(index, "tulips") == ["2"]

    def test_a_closed_index_says_so(self, open_index: OpenIndex) -> None:
        index = open_index()
        index.close()
        index.close()
        for verb in (lambda: index.search(Query(text="x")), lambda: index.add([]), lambda: index.commit(1)):
            with pytest.raises(IndexClosed):
                verb()

    # --- what is found ------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("script", SENTENCES)
    def test_r1_an_inner_word_of_a_script_without_blanks(self, script: str, filled: Callable[..., SearchIndex]) -> None:
        text, word = SENTENCES[script]
        entries = [entry(str(number), other) for number, other in enumerate(OTHERS)]
        index = filled([*entries, entry("it", text)])
        (hit,) = [hit for hit in index.search(Query(text=word, limit=3)).hits if hit.entry.id == "it"]
        assert word in hit.snippet

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("We were running late", "runs"),
            ("Ångström and naïve façades", "angstrom facade"),
            ("cafe\u0301", "café"),
            ("Ёлка во дворе", "елка"),
            ("Η Αθήνα είναι όμορφη", "αθηνα"),
            ("मुझे हिन्दी में बात करनी है", "हिन्दी"),
            ("ذهبتُ إلى المَدرسة", "المدرسة"),
            ("C:\\repo\\main.py", "main.py"),
            ("ﬁne ＡＢＣ", "abc"),
        ],
    )
    def test_forms_of_a_word(self, text: str, query: str, filled: Callable[..., SearchIndex]) -> None:
        index = filled([entry("1", text), entry("2", "nothing of that kind")])
        assert ask(index, query) == ["1"]

    def test_titles_topics_days_and_neighbours_find_too(self, filled: Callable[..., SearchIndex]) -> None:
        made = entry("1", "Yes, at nine.", title="Joanna", topics=("health",), around="Is the dentist open?")
        index = filled([*cut(made), entry("2", "Something else.", created_at=NOON - 9 * DAY)])
        for query in ("joanna", "health", "dentist", "15 November"):
            assert ask(index, query, now=NOON) == ["1"], query

    def test_ranks_what_holds_more_and_rarer_words_first(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled([
            entry("common", "my sister called about the garden"),
            entry("rare", "and then the beekeeper called about it"),
            entry("both", "sister and the beekeeper called about it"),
            *(entry(f"sister {number}", f"my sister said {number}") for number in range(8)),
        ])  # fmt: skip
        assert ask(index, "sister beekeeper")[:2] == ["both", "rare"]

    def test_long_texts_of_one_kind_do_not_bury_short_ones_of_another(self, filled: Callable[..., SearchIndex]) -> None:
        """A few facts among many long documents: measured against those, each fact would be far too short or long."""
        long = " ".join(f"word{number}" for number in range(110))
        documents = [entry(f"d{n}", f"{long} tulips {n}", kind="document", source="file") for n in range(60)]
        facts = [entry("f", "user grows tulips", kind="fact", source="episodic_memory")]
        facts += [entry(f"f{n}", f"user likes number {n}", kind="fact", source="episodic_memory") for n in range(5)]
        index = filled([*documents, *facts])
        assert ask(index, "tulips", diverse=False)[0] == "f"

    def test_both_messages_of_a_turn_are_one_hit_that_counts_both(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled(
            [
                *turn(1, "I planted tulips.", "Which colour did you choose?"),
                *turn(2, "Which tulips do you like?", "I like red tulips for the balcony."),
                *turn(3, "What about the balcony?", "It faces south."),
            ]
        )
        hits = index.search(Query(text="tulips balcony")).hits
        assert hits[0].entry.turn == 2
        assert len({hit.entry.turn for hit in hits}) == len(hits) == 3
        assert set(hits[0].parts) == {"user", "assistant"}
        messages = index.search(Query(text="tulips balcony", collapse="message")).hits
        assert [hit.entry.id for hit in messages].count("t/2/assistant") == 1
        assert len(messages) == 4

    def test_pieces_of_one_text_are_one_hit(self, filled: Callable[..., SearchIndex]) -> None:
        long = entry("d", "The tulips stand here. " * 100, kind="document", source="file")
        index = filled([*cut(long), entry("2", "tulips")])
        assert len(cut(long)) > 3
        assert sorted(hit.entry.whole for hit in index.search(Query(text="tulips")).hits) == ["2", "d"]
        assert len(ask(index, "tulips", collapse="entry")) > 3

    def test_the_best_of_each_source_comes_first(self, filled: Callable[..., SearchIndex]) -> None:
        """Also of one that others crowd out of the first candidates."""
        files = [entry(f"f{n}", f"tulips tulips tulips {n}", kind="document", source="file") for n in range(150)]
        mail = entry("m", "He wrote of many a thing, and in the end of tulips.", kind="document", source="mail")
        index = filled([*files, mail, entry("n", "tulips, she said, among others")])
        first = index.search(Query(text="tulips", limit=5)).hits
        assert {hit.entry.source for hit in first[:3]} == {"file", "mail", "notes"}
        plain = index.search(Query(text="tulips", limit=5, diverse=False)).hits
        assert "mail" not in {hit.entry.source for hit in plain}

    def test_the_newer_wins_near_ties(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled(
            [
                entry("old", "user lives in Oslo", created_at=NOON - 900 * DAY),
                entry("new", "user lives in Bergen", created_at=NOON - 2 * DAY),
                entry("middle", "user lives in Rome", created_at=NOON - 900 * DAY, updated_at=NOON - 400 * DAY),
            ]
        )
        assert ask(index, "where does the user live?") == ["new", "middle", "old"]

    def test_an_unrelated_question_gives_nothing(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled([entry(str(number), text) for number, text in enumerate(OTHERS)])
        assert ask(index, "quantum chromodynamics lattice simulation on nine supercomputers in Geneva") == []
        assert ask(index, "zebra") == []

    @pytest.mark.parametrize("others", [0, 40])
    def test_r1_one_character_with_any_neighbours_is_one_term(
        self, others: int, filled: Callable[..., SearchIndex]
    ) -> None:
        """Also where it has as many as there are texts, and where one text is that character only."""
        neighbours = "がはのをもとにでや"
        cats = [entry(f"cat {after}", f"庭に猫{after}いる") for after in neighbours]
        index = filled([*cats, entry("cat", "猫"), *(entry(f"{n}", f"雨が降る日 {n}") for n in range(others))])
        assert sorted(ask(index, "猫", limit=20)) == ["cat", *sorted(one.id for one in cats)]
        assert len(ask(index, "猫", limit=20, floor=2.0)) == 10
        assert ask(index, "猫 犬 zebra giraffe okapi lion tiger", floor=2.0) == []

    # --- who may see what ---------------------------------------------------------------------------------------------

    def test_owners_see_their_own_only(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled([entry("a", "tulips", owner="ada"), entry("b", "tulips", owner="bob")])
        assert ask(index, "tulips", owner="ada") == ["a"]
        assert ask(index, "tulips", owner="bob") == ["b"]
        assert ask(index, "tulips", owner="eve") == []
        assert ask(index, "what was there today?", owner="ada", now=NOON) == ["a"]

    def test_switches_sensitivity_expiry_exclusion_echo(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled(
            [
                entry("note", "tulips"),
                entry("secret", "tulips!", sensitive=True),
                entry("mail", "tulips?", kind="document", source="mail"),
                entry("expired", "tulips:", expires_at=NOON),
                *turn(4, "tulips;"),
            ]
        )
        everything = {"note", "secret", "mail", "expired", "t/4/user"}

        def found(**fields: Any) -> set[str]:
            return set(ask(index, "tulips", **fields))

        assert found() == everything - {"secret"}
        assert found(include_sensitive=True) == everything
        assert found(now=NOON - 1) == everything - {"secret"}
        assert found(now=NOON) == everything - {"secret", "expired"}
        assert found(kinds=frozenset({"document"})) == {"mail"}
        assert found(kinds=frozenset({"turn", "unheard of"})) == {"t/4/user"}
        assert found(kinds=frozenset()) == set()
        assert found(sources=frozenset({"notes"})) == {"note", "expired"}
        assert found(sources=frozenset()) == set()
        assert found(exclude=frozenset({"note", "mail"})) == {"expired", "t/4/user"}
        assert found(exclude_turns=frozenset({("t", 4)})) == {"note", "mail", "expired"}
        assert found(exclude_turns=frozenset({("u", 4)})) == everything - {"secret"}
        assert found(echo=" tulips; ") == {"note", "mail", "expired"}
        assert found(limit=0) == set()
        assert len(found(limit=2)) == 2

    def test_what_is_not_allowed_never_leaves_however_much_of_it_there_is(
        self, filled: Callable[..., SearchIndex]
    ) -> None:
        fenced = [entry(f"f{n}", "tulips tulips", position=n) for n in range(1, 400)]
        index = filled([*fenced, entry("late", "tulips in a longer sentence about gardens", position=400)])
        answer = index.search(Query(text="tulips"), lambda one: one.position >= 400)
        assert ids(answer) == ["late"]
        today = index.search(Query(text="today", now=NOON), lambda one: one.position >= 400)
        assert ids(today) == ["late"]
        assert ids(index.search(Query(text="tulips"), lambda _: False)) == []

    def test_a_day_is_listed_behind_any_number_of_pieces_and_of_what_is_not_shown(
        self, filled: Callable[..., SearchIndex]
    ) -> None:
        said = {"kind": "turn", "source": "pace_history", "thread": "t"}
        early = [entry(f"t/{n}/user", f"early {n}", part="user", turn=n, created_at=NOON + n, **said) for n in (1, 2)]
        long = entry("t/3/user", "The tulips stand here. " * 4_000, part="user", turn=3, created_at=NOON + 3, **said)
        secret = [
            entry(f"t/{n}/user", f"{n}", part="user", turn=n, created_at=NOON + n, sensitive=True, **said)
            for n in range(4, 154)
        ]
        assert len(cut(long)) > 110
        index = filled([*early, *cut(long), *secret])
        hits = index.search(Query(text="what did I do today?", now=NOON + 200)).hits
        assert [hit.entry.turn for hit in hits] == [3, 2, 1]
        (one,) = index.search(Query(text="what did I do today?", now=NOON + 200, limit=1)).hits
        assert one.entry.turn == 3

    @pytest.mark.parametrize(
        "text",
        ["where  are the\ntulips \n\n of  May?", "Where do the tulips stand? " * 200, "何処に花がありますか。" * 100],
        ids=["blanks", "long", "no blanks"],
    )
    def test_a_question_does_not_find_itself(self, text: str, filled: Callable[..., SearchIndex]) -> None:
        asked = entry("t/1/user", text, kind="turn", source="pace_history", thread="t", turn=1, part="user")
        other = turn(2, f"Before that: {text[:100]}")
        index = filled([*cut(asked), *other])
        assert {hit.entry.turn for hit in index.search(Query(text=text)).hits} == {1, 2}
        assert ask(index, text, echo=text) == ["t/2/user"]

    def test_a_predicate_that_fails_fails_the_search_and_not_the_index(
        self, filled: Callable[..., SearchIndex]
    ) -> None:
        index = filled([entry("1", "tulips")])

        def fails(_: Entry) -> bool:
            raise ValueError("of the caller")

        with pytest.raises(ValueError, match="of the caller"):
            index.search(Query(text="tulips"), fails)
        answer = index.search(Query(text="tulips"))
        assert (ids(answer), answer.notes) == (["1"], ())

    def test_a_zone_that_does_not_exist_names_no_days(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled([entry("1", "tulips")])
        assert ask(index, "tulips yesterday", now=NOON, zone="No/Where") == ["1"]
        assert ask(index, "tulips yesterday", now=NOON, zone="../../etc") == ["1"]

    # --- dates --------------------------------------------------------------------------------------------------------

    def test_a_question_for_a_day_only_lists_the_newest_of_each_source(
        self, filled: Callable[..., SearchIndex]
    ) -> None:
        index = filled(
            [
                *turn(1, "one", created_at=NOON - DAY),
                *turn(2, "two", "two, too", created_at=NOON - DAY + 1),
                entry("note", "three", created_at=NOON - DAY + 2),
                entry("older", "four", created_at=NOON - 2 * DAY),
                entry("newer", "five"),
            ]
        )
        answer = index.search(Query(text="What did I do yesterday?", now=NOON))
        assert ids(answer) == ["note", "t/2/user", "t/1/user"]
        assert answer.notes == ("newest of yesterday",)

    def test_what_is_of_the_day_that_was_named_is_preferred(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled(
            [
                entry("then", "we talked about the tulips and other flowers too", created_at=NOON - DAY),
                entry("now", "we talked about tulips", created_at=NOON),
            ]
        )
        assert ask(index, "what about tulips", now=NOON)[0] == "now"
        assert ask(index, "what about tulips yesterday", now=NOON) == ["then", "now"]

    # --- any query ----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
    def test_r6_any_query_is_legal(self, query: str, filled: Callable[..., SearchIndex]) -> None:
        index = filled([entry(str(number), text) for number, text in enumerate([*OTHERS, *HOSTILE])])
        assert isinstance(index.search(Query(text=query, now=NOON)), Answer)
        assert isinstance(index.search(Query(text=query * 3, limit=10_000_000, zone="Asia/Tokyo")), Answer)

    def test_r6_a_query_of_100_kilobytes_uses_its_rarest_terms(self, filled: Callable[..., SearchIndex]) -> None:
        index = filled(
            [
                entry("it", "the okapi"),
                *(entry(str(n), " ".join(f"word{m}" for m in range(n * 20, n * 20 + 40))) for n in range(50)),
            ]
        )
        query = " ".join(f"word{number}" for number in range(1_000)) + " okapi " + "filler " * 15_000
        assert len(query) > 100_000
        answer = index.search(Query(text=query, floor=False))
        assert "it" in ids(answer)
        assert "64 rarest of 1,002 terms used" in answer.notes

    @pytest.mark.parametrize(("filler", "used"), [("filler ", "19,998"), ("雨", "20,000")])
    def test_of_a_longer_question_its_beginning_is_asked(
        self, filler: str, used: str, filled: Callable[..., SearchIndex]
    ) -> None:
        index = filled([entry("first", "okapi"), entry("last", "zebra")])
        begins = "okapi  "
        query = begins + filler * (30_000 // len(filler)) + " zebra"
        answer = index.search(Query(text=query, floor=0.0))
        assert ids(answer) == ["first"]
        assert answer.notes[0] == f"first {used} of {len(query):,} characters used"

    def test_only_stop_words_are_searched_for_when_nothing_else_is_left(
        self, filled: Callable[..., SearchIndex]
    ) -> None:
        index = filled([entry("1", "to be or not to be"), entry("2", "tulips")])
        assert ask(index, "to be or not to be") == ["1"]

    @settings(
        max_examples=25,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,  # each example has texts of its own in one index
            HealthCheck.differing_executors,  # every subclass runs it
            HealthCheck.too_slow,
        ],
    )
    @given(
        texts=st.lists(st.text(max_size=200), min_size=1, max_size=4),
        query=st.text(max_size=50),
        when=st.integers(min_value=0, max_value=4 * 10**15),
        commit=st.booleans(),
    )
    def test_any_text_and_any_query_and_every_word_finds_its_entry(
        self, open_index: OpenIndex, texts: list[str], query: str, when: int, *, commit: bool
    ) -> None:
        index = open_index()
        made = [entry(f"any {number}", text, created_at=when) for number, text in enumerate(texts)]
        index.add(made)
        if commit:
            index.commit(index.position + 1)
        assert isinstance(index.search(Query(text=query, now=when)), Answer)
        for one in made:
            for word in analysis.words(analysis.normalise(one.text))[:5]:
                found = index.search(Query(text=word, limit=1000, floor=False))
                asked = analysis.query_words(analysis.normalise(word))
                if set(asked) <= set(analysis.words(analysis.normalise(one.text))):
                    assert one.id in ids(found), word
        index.delete(one.id for one in made)
        index.close()
