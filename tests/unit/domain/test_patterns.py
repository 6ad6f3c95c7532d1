"""What a sentence makes the pattern extractor learn, and what it must not: a table by rule, with the reason of each.

An expectation is `subject | predicate | value`; the subject "user" is left out. None: nothing may be learnt.
"""

from __future__ import annotations

import pytest

from pace_actors.domain.patterns import MULTI_VALUED, PATTERNS_VERSION, Found, extract

Table = dict[str, list[tuple[str, list[str], str]]]

ASSERTED: Table = {
    "preferences": [
        ("I prefer dark mode", ["prefers | dark mode"], "the reference case"),
        ("i prefer dark mode", ["prefers | dark mode"], "voice and phones write no capitals"),
        ("I really prefer tea over coffee.", ["prefers | tea over coffee"], "an adverb; a comparison says more"),
        ("My preferred editor is Vim.", ["prefers editor | Vim"], "a preference with a place of its own"),
        ("my favourite colour is blue!", ["prefers colour | blue"], "favourite is preferred"),
        ("Blue is my favorite color.", ["prefers color | Blue"], "the other way round"),
        ("My go-to snack is popcorn", ["prefers snack | popcorn"], "go-to is preferred"),
        ("I have a strong preference for window seats.", ["prefers | window seats"], "a noun for the verb"),
        ("I prefer not to fly", ["prefers | not to fly"], "what is preferred is not to"),
        ("Due to seasickness, I prefer to stay on land.", ["prefers | to stay on land"], "a reason in front"),
        ("I like jazz.", ["likes | jazz"], "plain"),
        ("I love hiking in the Alps", ["likes | hiking in the Alps"], "plain"),
        ("I really enjoy cooking.", ["likes | cooking"], "plain"),
        ("I'm a big fan of esports.", ["likes | esports"], "plain"),
        ("I'm passionate about photography", ["likes | photography"], "plain"),
        ("We love dogs", ["likes | dogs"], "the user is one of them"),
        ("I like red, green and blue", ["likes | red, green and blue"], "a list is one value"),
        ("I dislike rooms with modern, simple beds.", ["dislikes | rooms with modern, simple beds"], "the same"),
        ("I avoid buses and greatly prefer trains", ["avoids | buses", "prefers | trains"], "an adverb between"),
        (
            "I dislike staying in rooms with modern, simple beds",
            ["dislikes | staying in rooms with modern, simple beds"],
            "an adjective goes with the next part",
        ),
        (
            "I like reading books, watching films, cooking and chess",
            ["likes | reading books, watching films, cooking and chess"],
            "a long list is one value",
        ),
        ("We already told you, I prefer tea", ["prefers | tea"], "one's own report"),
        ("I prefer quiet, remote places", ["prefers | quiet, remote places"], "adjectives belong to what follows"),
        ("I hate mushrooms", ["dislikes | mushrooms"], "plain"),
        ("I can't stand loud music.", ["dislikes | loud music"], "an idiom"),
        ("I dislike any kind of fast food.", ["dislikes | any kind of fast food"], "any is a bound, not a reference"),
        ("I don't like olives.", ["dislikes | olives"], "a negated liking is a dislike"),
        ("I’m not a fan of horror films", ["dislikes | horror films"], "a curly apostrophe"),
        ("I'm not into complex games", ["dislikes | complex games"], "the opposite of being into them"),
        ("I'm not really into opera", ["dislikes | opera"], "the opposite of being into it"),
        ("I have a strong aversion to flying", ["dislikes | flying"], "a noun for the verb"),
        ("I find musicals boring.", ["dislikes | musicals"], "a judgement"),
        ("I avoid caffeine.", ["avoids | caffeine"], "plain"),
        ("I refuse to eat at buffets.", ["refuses | to eat at buffets"], "plain"),
        ("I have a fear of heights", ["fears | heights"], "plain"),
        ("I only enjoy documentaries", ["likes | documentaries"], "what is excluded is not said"),
        ("I'm uncomfortable with flying", ["dislikes | flying"], "plain"),
        ("I prefer fermented foods for their taste", ["prefers | fermented foods"], "the reason is not the value"),
        ("I usually use Firefox", ["usually uses | Firefox"], "a habit"),
        ("I only read independent books.", ["only reads | independent books"], "a habit that excludes"),
        ("I never watch horror films", ["never watches | horror films"], "a habit that excludes"),
    ],
    "several in one sentence": [
        ("I hate pop and prefer jazz", ["dislikes | pop", "prefers | jazz"], "the second verb shares the subject"),
        ("I like tea but my wife prefers coffee", ["likes | tea", "user's wife | prefers | coffee"], "two subjects"),
        (
            "I live in Oslo, I work at Equinor and I have a cat.",
            ["lives in | Oslo", "works at | Equinor", "has pet | a cat"],
            "three clauses",
        ),
        ("My name is Budi, and I live in Jakarta.", ["is named | Budi", "lives in | Jakarta"], "two clauses"),
        ("I'm bored. I love chess.", ["likes | chess"], "a momentary state vetoes its own sentence only"),
        ("I'm tired! But I love my job", ["likes | my job"], "the same"),
        ("I love hiking, can you suggest a trail?", ["likes | hiking"], "a question behind a statement"),
        ("I'm vegan, what can I eat?", ["follows diet | vegan"], "a question behind a statement"),
    ],
    "name": [
        ("My name is Ada.", ["is named | Ada"], "plain"),
        ("my name is bob", ["is named | bob"], "without capitals"),
        ("john is my name", ["is named | john"], "the other way round"),
        ("Call me Ishmael.", ["is named | Ishmael"], "how to be called"),
        ("I prefer to go by Brad", ["is named | Brad"], "no preference in general"),
        ("I prefer to be called Mikey", ["is named | Mikey"], "no preference in general"),
        ("Hi, I'm Christina and I need help", ["is named | Christina"], "a greeting gives the name"),
        ("I'm Craig, a developer from Leeds", ["is named | Craig"], "a name with a calling"),
        ("My dog's name is Rex", ["user's dog | is named | Rex"], "a pet's"),
        ("my sister's name is Zoë", ["user's sister | is named | Zoë"], "a relative's"),
    ],
    "place": [
        ("I live in Oslo now", ["lives in | Oslo"], "filler at the end goes"),
        ("I'm based in St. Gallen.", ["lives in | St. Gallen"], "an abbreviation ends no sentence"),
        ("We live in Berlin, Germany, with two cats.", ["lives in | Berlin, Germany"], "a place and its country"),
        ("I'm from Lagos", ["is from | Lagos"], "where from"),
        ("My hometown is Bergen.", ["is from | Bergen"], "home town"),
        ("My parents live in Spain", ["user's parents | lives in | Spain"], "a relative"),
    ],
    "work": [
        ("I work at Google.", ["works at | Google"], "employer"),
        ("I work for the city council", ["works at | the city council"], "employer"),
        ("I work as a nurse", ["works as | a nurse"], "job"),
        (
            "I'm a nurse at St. Mary's Hospital in Leeds",
            ["works as | nurse", "works at | St. Mary's Hospital"],
            "both; the dot of St. is no end",
        ),
        ("i am a software engineer", ["works as | software engineer"], "job"),
        ("My job is as a teacher", ["works as | a teacher"], "job"),
        ("I work in marketing", ["works in | marketing"], "field"),
        ("I work from home", ["works | from home"], "where"),
        ("I'm a college student", ["is | a college student"], "no job"),
        ("My daughter is a doctor in Boston.", ["user's daughter | works as | doctor"], "a relative"),
    ],
    "milestones": [
        ("The deadline for the grant proposal is Friday.", ["user's grant proposal | is due | Friday"], "weekday"),
        ("my thesis is due on June 1, 2024", ["user's thesis | is due | June 1, 2024"], "date"),
        (
            "I've got a deadline of May 10, 2024, to finalize my statement, and I'm worried",
            ["has deadline | May 10, 2024, to finalize my statement"],
            "the day and what for",
        ),
        ("Our launch is on May 5", ["user's launch | is due | May 5"], "date"),
        ("we're launching the beta on Friday", ["launches | the beta on Friday"], "with its day"),
        ("We ship version 2 on Monday", ["ships | version 2 on Monday"], "with its day"),
    ],
    "pets": [
        ("I have a cat", ["has pet | a cat"], "plain"),
        ("I've got two dogs named Rex and Max", ["has pet | two dogs named Rex and Max"], "with names"),
        (
            "I have three cats, two dogs and a parrot.",
            ["has pet | three cats", "has pet | two dogs", "has pet | a parrot"],
            "each by itself",
        ),
        ("I own a golden retriever.", ["has pet | a golden retriever"], "a breed"),
    ],
    "allergies and diet": [
        ("I'm allergic to peanuts.", ["is allergic to | peanuts"], "plain"),
        (
            "I'm allergic to nuts and shellfish",
            ["is allergic to | nuts", "is allergic to | shellfish"],
            "each by itself",
        ),
        ("I have a severe peanut allergy", ["is allergic to | peanut"], "a noun for the verb"),
        ("I have an allergy to penicillin.", ["is allergic to | penicillin"], "a noun for the verb"),
        ("My husband is allergic to cats", ["user's husband | is allergic to | cats"], "a relative"),
        ("I'm vegetarian", ["follows diet | vegetarian"], "diet"),
        ("I follow a strict gluten-free diet.", ["follows diet | gluten-free"], "diet"),
        ("I don't eat meat", ["does not eat | meat"], "diet"),
        ("Please note that I'm allergic to shellfish.", ["is allergic to | shellfish"], "a lead that changes nothing"),
        ("remember that I'm vegan", ["follows diet | vegan"], "a lead that changes nothing"),
    ],
    "birthdays": [
        ("My birthday is on March 3, 1990.", ["has birthday | March 3, 1990"], "the comma belongs to the date"),
        ("I was born on 3 March 1990", ["has birthday | 3 March 1990"], "a past that lasts"),
        ("my mom's birthday is 4 July", ["user's mom | has birthday | 4 July"], "a relative's"),
    ],
    "languages": [
        ("I speak French.", ["speaks | French"], "plain"),
        ("I speak English, French and Dutch", ["speaks | English", "speaks | French", "speaks | Dutch"], "each"),
        ("I'm fluent in Japanese", ["speaks | Japanese"], "plain"),
        ("My native language is Swahili", ["speaks | Swahili"], "plain"),
        ("I'm learning Korean", ["is learning | Korean"], "not spoken yet"),
    ],
    "family and health": [
        ("my mom is in the hospital with pneumonia", ["user's mom | is in | the hospital"], "the reference case"),
        ("My wife has breast cancer", ["user's wife | has condition | breast cancer"], "a partner"),
        ("my dad has been diagnosed with diabetes", ["user's dad | has condition | diabetes"], "lasts until now"),
        ("My son is sick", ["user's son | is | sick"], "plain"),
        ("my partner is pregnant!", ["user's partner | is | pregnant"], "plain"),
        ("I have two kids", ["has family | two kids"], "plain"),
        ("I'm married", ["has marital status | married"], "plain"),
        ("I have asthma.", ["has condition | asthma"], "the user's own"),
    ],
    "ends": [
        ("I prefer tea. Open the window", ["prefers | tea"], "stops at the end of the sentence"),
        ("我喜欢茶。I prefer tea。好的", ["prefers | tea"], "stops of Chinese end a sentence too"),
        ("I like tea because it calms me", ["likes | tea"], "the reason is not the value"),
        ("I like tea (green mostly)", ["likes | tea"], "brackets end it"),
        ("i'm from rome how about you", ["is from | rome"], "a question without its comma"),
        ("i like coffee i drink it daily", ["likes | coffee"], "a sentence without its stop"),
        ("I like tea, especially green", ["likes | tea"], "no list"),
        ("you ? i have a cat ! whats up", ["has pet | a cat"], "stops that stand alone"),
        ("I like tea a lot, thanks", ["likes | tea"], "filler goes"),
        ("I like tea :) Open the door", ["likes | tea"], "a smiley"),
        ('I love "The Matrix"', ["likes | The Matrix"], "a title in quotes is a value"),
        ('I love "The Wall" too- so good', ["likes | The Wall"], "a title ends with its quotes"),
        ("- I prefer tea\n- I'm vegan", ["prefers | tea", "follows diet | vegan"], "a short list of one's own"),
        ("I prefer\ndark mode", ["prefers | dark mode"], "a line that goes on in lower case"),
        ("```\nI like tea\n```\nI prefer dark mode", ["prefers | dark mode"], "behind code"),
    ],
}

NOTHING: dict[str, list[tuple[str, str]]] = {
    "momentary states": [
        ("I'm hungry", "the reference case"),
        ("I'm so tired and I hate mornings", "vetoes its whole sentence"),
        ("I'm bored and I love games", "vetoes its whole sentence"),
        ("I prefer the sofa right now", "passes"),
        ("I prefer tea for today", "passes"),
        ("I love the soup today", "passes"),
        ("I prefer the train tonight", "passes"),
        ("I'm thirsty", "passes"),
    ],
    "commands": [
        ("open Safari", "the reference case"),
        ("click the link I like", "command"),
        ("Tap on my favorite song", "command"),
        ("press play, I love music", "command"),
        ("type I prefer tea", "what is to be typed"),
        ("scroll down, I hate ads", "command"),
        ("draft a mail: I live in Rome", "what is to be drafted"),
        ("compose a poem. I love you", "pronoun"),
        ("send Bob my name", "command"),
        ("set a timer because I love eggs", "command"),
        ("start a timer and I prefer ten minutes", "command"),
        ("play the song I love", "command"),
        ("remind me that I prefer tea", "a reminder"),
        ("can you tell Bob I live in Rome", "command"),
        ("Translate this: I love tea. I live in Rome.", "material of a task, to its end"),
        ("Please proofread this text:\nI live in Rome and I work at IBM.", "material of a task"),
        ("call me a taxi", "no name"),
        ("call me later", "no name"),
    ],
    "negation": [
        ("I'm not vegan", "negated"),
        ("I don't prefer tea", "not the opposite either"),
        ("I don't hate tea", "not the opposite either"),
        ("I don't live in Rome", "negated"),
        ("I do not work at IBM", "negated"),
        ("I don't have a dog", "negated"),
        ("My name is not Bob", "negated"),
        ("I'm not allergic to nuts", "negated"),
        ("I'm definitely not a historian", "negated behind an adverb"),
        ("I have no allergies", "negated"),
        ("I don't speak German", "negated"),
        ("My mom is not in the hospital", "negated"),
        ("I hardly like tea", "nearly negated"),
        ("I have no fear of heights", "negated inside the pattern"),
        ("I have no preference for tea", "negated inside the pattern"),
        ("I have no love for opera", "negated inside the pattern"),
        ("I have no known allergies to nuts", "negated inside the pattern"),
        ("I have never been diagnosed with asthma", "negated inside the pattern"),
        ("I have little passion for jazz", "negated inside the pattern"),
    ],
    "questions": [
        ("Do I like tea?", "question"),
        ("What do I prefer?", "question"),
        ("I like tea, right?", "asked for"),
        ("I live in Oslo?", "asked for"),
        ("is my name Bob", "a question without its mark"),
        ("why do I love tea", "a question without its mark"),
        ("私はお茶が好きですか？ I like tea？", "a wide question mark"),
    ],
    "quotes": [
        ('"I love cats," she said', "quoted"),
        ("“I live in Rome”", "quoted"),
        ("«I prefer tea»", "quoted"),
        ("「I prefer tea」", "quoted"),
        ('He wrote: "I live in Rome. I love pizza."', "the quote goes over two sentences"),
        ("'I love cats', said the sign", "single marks"),
        ('"I prefer tea and I live in Rome', "a quote that stays open"),
        ("> I live in Rome", "a quoted mail"),
        ("> Hi, I live in Rome", "a quoted mail"),
        ("'Well, I love cats', he wrote", "single marks"),
    ],
    "hypotheticals": [
        ("If it rains, I like tea", "if"),
        ("If I were rich I live in Paris", "if"),
        ("I wish I had a dog and I love dogs", "wish"),
        ("I would prefer tea", "would"),
        ("I'd love a dog", "would"),
        ("Maybe I prefer tea", "maybe"),
        ("perhaps my name is Bob", "perhaps"),
        ("Let's say I live in Rome", "let's say"),
        ("Pretend to be a pirate. I am a nurse.", "a role"),
        ("You are a CEO. I work at IBM.", "a role"),
        ("I think I like tea", "a guess"),
        ("I might be allergic to nuts", "might"),
        ("I'm not sure I like tea", "not sure"),
    ],
    "other people's words": [
        ("She said I love cats", "reported"),
        ("He told me I am allergic to nuts", "reported"),
        ("My boss thinks, I live in Rome", "reported"),
        ("According to Bob, I prefer tea", "reported"),
        ("She asked whether I like tea, and I prefer coffee", "reported, and all behind it"),
        ("Anna: I love cats\nBen: I hate dogs", "a transcript"),
        ("Dear Sir,\nI live in Rome.\nBest", "a letter"),
        ("On Mon, 3 May Bob wrote:\nI live in Rome", "a quoted mail"),
        ("People love tea", "not the user"),
        ("Ada likes tea", "not the user"),
    ],
    "past": [
        ("I used to live in Paris", "used to"),
        ("I used to love tea", "used to"),
        ("My mom was in the hospital", "was in"),
        ("my mom is out of the hospital", "out of the hospital"),
        ("My mom is back home from the hospital", "home from"),
        ("I no longer like tea", "no longer"),
        ("I don't like tea anymore", "not any more: neither like nor dislike is known"),
        ("I lived in Rome", "past"),
        ("I worked at IBM", "past"),
        ("I had a dog", "past"),
        ("As a child I love ice cream", "as a child"),
        ("My name was Bob", "past"),
    ],
    "values that say nothing alone": [
        ("I prefer it", "pronoun"),
        ("I prefer its simplicity", "pronoun"),
        ("I prefer the original", "of the conversation"),
        ("I like any colour", "a consent"),
        ("my name is spelled wrong", "no name"),
        ("my favorite part is Rome", "of the conversation"),
        ("where Anna sings is my favorite song", "no song"),
        ("I like this", "pronoun"),
        ("I love you", "pronoun"),
        ("I like your answer", "the assistant's"),
        ("I love the idea", "of the conversation"),
        ("I like the second option", "of the conversation"),
        ("I like #4", "of the conversation"),
        ("I like suggestions from the audience", "of the conversation"),
        ("I love how you did it", "of the conversation"),
        ("I hate that", "pronoun"),
        ("I'm allergic to it", "pronoun"),
        ("My favorite part of the trip was Rome", "past, and of the trip"),
        ("I have a hot dog", "no pet"),
        ("My mom Kimberly prefers Kevin", "a name is no adverb"),
        ("I love the color and texture", "of the conversation"),
        ("I like the sound of the second plan", "of the conversation"),
        ("I love escaping to that world", "of the conversation"),
        ("I work for a company", "no employer"),
        ("I love the beach Olympics concept", "of the conversation"),
        ("my allergies are acting up", "no thing that one is allergic to"),
        ("I have a book about cats", "no pet"),
        ("I have a fear of the dog next door and its bark", "no pet"),
        ("We're expecting around 200 guests", "no child"),
        ("I'm running into an issue", "no liking"),
        ("my company is wallowing over it", "no employer"),
        ("I live in fear", "no place"),
        ("I live in the moment", "no place"),
        ("I work for hours", "no employer"),
        ("I'm from the future", "no place"),
        ("My birthday is next week", "means something on that day only"),
        ("the deadline is tomorrow", "means something on that day only"),
        ("Hi, I'm German", "no name"),
        ("I prefer", "no value"),
        ("I like ...", "no value"),
    ],
    "pasted": [
        ("```\nI prefer tea\n```", "code"),
        ("    I prefer tea", "code"),
        ("# Notes\nI live in Rome", "a document"),
        ("| Well, I like tea |", "a table"),
        ("\n".join(f"- I like tea number {n}" for n in range(9)), "a list too long to be talk"),
    ],
    "other languages": [
        ("Ich bevorzuge Tee", "German"),
        ("J'aime le thé", "French"),
        ("mi piace il tè", "Italian"),
        ("saya suka teh", "Indonesian"),
        ("私はお茶が好きです", "Japanese"),
        ("나는 차를 좋아해", "Korean"),
        ("我喜欢茶", "Chinese"),
    ],
}


def words(found: Found) -> str:
    owner = "" if found.subject == "user" else f"{found.subject} | "
    return f"{owner}{found.predicate} | {found.value}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(text, expected, id=f"{rule}: {text}: {why}")
        for rule, cases in ASSERTED.items()
        for text, expected, why in cases
    ],
)
def test_what_is_plainly_asserted_is_learnt(text: str, expected: list[str]) -> None:
    assert [words(found) for found in extract(text)] == expected


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=f"{rule}: {text[:40]}: {why}") for rule, cases in NOTHING.items() for text, why in cases],
)
def test_what_asserts_nothing_of_the_user_is_not_learnt(text: str) -> None:
    assert [words(found) for found in extract(text)] == []


def test_the_tables_stay_large_enough_to_mean_something() -> None:
    assert sum(map(len, ASSERTED.values())) + sum(map(len, NOTHING.values())) >= 150


def test_the_reference_cases_hold_to_the_thousandth() -> None:
    assert extract("my mom is in the hospital with pneumonia") == (
        Found("user's mom", "is in", "the hospital", 780, ("#family", "#health")),
    )
    assert extract("I prefer dark mode") == (Found("user", "prefers", "dark mode", 820, ("#preference",)),)
    assert extract("my preferred browser is Firefox") == (
        Found("user", "prefers browser", "Firefox", 820, ("#preference",)),
    )


def test_a_triple_counts_once_a_turn() -> None:
    assert [words(found) for found in extract("I like tea. Yes, I like tea. I like TEA!")] == ["likes | tea"]


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("I prefer window seats", ("#preference", "#travel")),
        ("I dislike hotels with casinos", ("#preference", "#travel")),
        ("I work at Google", ("#work",)),
        ("My sister works at Google", ("#work", "#family")),
        ("I'm allergic to nuts", ("#health",)),
        ("I'm divorced", ("#relationship",)),
        ("Our launch is on May 5", ("#work", "#project")),
        ("My name is Ada", ()),
    ],
)
def test_topics_come_from_the_pattern_and_from_words(text: str, topics: tuple[str, ...]) -> None:
    (found,) = extract(text)
    assert found.topics == topics


def test_a_long_value_is_cut_at_a_word_within_180_characters() -> None:
    (found,) = extract("I love " + "very green tea leaves " * 20)
    assert 160 < len(found.value) <= 180
    assert found.value.endswith(("very", "green", "tea", "leaves"))


def test_what_holds_several_values_at_once_is_said_of_predicates_that_are_made() -> None:
    assert {"likes", "dislikes", "speaks", "has pet", "is allergic to", "knows"} <= MULTI_VALUED
    assert not MULTI_VALUED & {"prefers", "lives in", "works at", "is named", "has birthday", "is in", "is due"}
    assert PATTERNS_VERSION >= 1
