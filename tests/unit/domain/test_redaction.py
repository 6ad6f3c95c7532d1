"""Secrets leave a text before it is stored (facts.md "Redaction", F8): shapes, prose, properties."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain import secret_shapes
from pace_actors.domain.redaction import redact
from pace_actors.values import Masked

B64 = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{B64}\n{B64}\n-----END RSA PRIVATE KEY-----"

SECRETS: list[tuple[str, str, str]] = [
    # text, what must be gone, kind
    ("use sk-proj-Ab3dEf6hIj9kLmNoPqRsTuVw please", "sk-proj-Ab3dEf6hIj9kLmNoPqRsTuVw", "key"),
    ("sk-ant-api03-abcDEF123456789012345-xyz", "sk-ant-api03-abcDEF123456789012345-xyz", "key"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "key"),
    ("github_pat_11ABCDEFG0abcdefghij_KLMNOPQRSTUVWX", "github_pat_11ABCDEFG0abcdefghij_KLMNOPQRSTUVWX", "key"),
    ("xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012-abcdefABCDEF", "key"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSyA1234567890abcdefghijklmnopqrstuv", "key"),
    ("AKIAIOSFODNN7EXAMPL2", "AKIAIOSFODNN7EXAMPL2", "key"),
    ("my key is glpat-x1y2z3a4b5c6d7e8f9g0", "glpat-x1y2z3a4b5c6d7e8f9g0", "key"),
    ("hf_abcdefghij1234567890", "hf_abcdefghij1234567890", "key"),
    ("stripe sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "key"),
    ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef", "token"),
    ("Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l", "YWxhZGRpbjpvcGVuc2VzYW1l", "token"),
    ("curl -H 'authorization: token a1b2c3d4e5'", "a1b2c3d4e5", "token"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "eyJzdWIiOiIxMjM0NTY3ODkwIn0",
        "token",
    ),
    (PEM, B64, "private_key"),
    (PEM.rpartition("-----END")[0], B64, "private_key"),
    (PEM.replace("\n", "\\n"), B64, "private_key"),
    ("password = hunter2", "hunter2", "password"),
    ("PASSWORD=swordfish", "swordfish", "password"),
    ('{"password": "tr0ub4dor&3"}', "tr0ub4dor&3", "password"),
    ("DB_PASSWORD: s3cr3t!x", "s3cr3t!x", "password"),
    ("api_key: 'a1b2c3d4e5f6'", "a1b2c3d4e5f6", "key"),
    ("X-Api-Key: 8f14e45fceea167a", "8f14e45fceea167a", "key"),
    ("client_secret=Zx9-_yQ2", "Zx9-_yQ2", "secret"),
    ("token => 'f00ba4f00ba4'", "f00ba4f00ba4", "token"),
    ("https://x.example/?token=f00ba4f00ba4&page=2", "f00ba4f00ba4", "token"),
    ("user:master pw:dipPr124Gg!", "dipPr124Gg!", "password"),
    ("mysql -u root --password Sne3sd8AZjq", "Sne3sd8AZjq", "password"),
    ("CREATE USER x IDENTIFIED BY 'gh7Ty_2q'", "gh7Ty_2q", "password"),
    ("<password>cack1e!</password>", "cack1e!", "password"),
    ("my password is hunter2", "hunter2", "password"),
    ("My password is swordfish.", "swordfish", "password"),
    ("my wifi password is 'blue whale seven'", "blue whale seven", "password"),
    ("The password for the router is Kittens!", "Kittens!", "password"),
    ("our guest passcode is now 4821", "4821", "password"),
    ("My PIN code is 0042", "0042", "password"),
    ("Change my password to “open sesame” please", "open sesame", "password"),
    ("wifi password: swordfish", "swordfish", "password"),
    ("Mein Passwort ist Hund1234", "Hund1234", "password"),
    ("mi contraseña es Gato2024", "Gato2024", "password"),
    ("mon mot de passe est Chat99!", "Chat99!", "password"),
    ("パスワードはhunter2です", "hunter2", "password"),
    ("我的密码是hunter2", "hunter2", "password"),
    ("비밀번호는 hunter2 입니다", "hunter2", "password"),
    ("мой пароль: Кот2024", "Кот2024", "password"),
    ("postgres://ann:s3cr3tpw@db.example/x", "s3cr3tpw", "password"),
    ("curl -u admin:hunter22 https://x.example", "hunter22", "password"),
    ("card 4111 1111 1111 1111, thanks", "4111 1111 1111 1111", "card"),
    ("5500-0000-0000-0004", "5500-0000-0000-0004", "card"),
    ("amex 378282246310005", "378282246310005", "card"),
]

PROSE = [
    "I forgot my password again, how do I reset it?",
    "My password is not working.",
    "The password is required and must have 8-12 characters.",
    "Password: please enter it below",
    "password reset link sent",
    "Use a password manager; passwords are hard.",
    "My password is too long, and my PIN is blocked.",
    "my password is still the same as before",
    "the secret is patience",
    "What is the secret? It is love.",
    "the token is 24h long",
    "a token: a unit of text",
    "max_tokens=1024",
    "secret santa is on 12 December",
    "She bears the bearer of bad news that were told before the storm.",
    "bearer of a-very-long-hyphenated-surname-indeed",
    "sk-fading-circle-container is a class of the spinner",
    "pass: 12 of 14 tests",
    "compass=N45E, bypass=3",
    "key: F12",
    "Keyword: password",
    "password = os.environ['PW']",
    "password = getpass()",
    "password: str = None",
    "password=<your-password>",
    "password=${DB_PASSWORD}",
    'api_key = "YOUR_API_KEY"',
    "api_key=OPENAI_API_KEY",
    "token = self.token",
    "http://localhost:8080/a@b",
    "https://user:password@host is the form of such an address",
    "order 4111 1111 1111 1112 was shipped",
    "call +49 30 901820 or 0800 1234567",
    "1700000000000000 microseconds",
    "ISBN 978-3-16-148410-0",
    "4242 people, 4242 cats, 4242 dogs, 4242 birds",
    "eyJust a word",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "パスワードを忘れました",
    "我忘记了密码",
    "the pass (mountain2) is closed",
    "Pass the salt: thanks",
]


@pytest.mark.parametrize(("text", "secret", "kind"), SECRETS)
def test_a_secret_leaves_its_text_and_is_named_by_its_kind(text: str, secret: str, kind: str) -> None:
    (masked,), counts = redact([text], "mask")
    assert secret not in masked
    assert f"[redacted:{kind}:1]" in masked
    assert counts == (Masked(kind, 1),)


@pytest.mark.parametrize("text", PROSE)
def test_what_only_speaks_of_secrets_stays_as_it_is(text: str) -> None:
    assert redact([text], "mask") == ((text,), ())


def test_only_the_secret_goes_and_the_words_around_it_stay() -> None:
    assert redact(["my password is hunter2, tell Bob"], "mask")[0] == (
        "my password is [redacted:password:1], tell Bob",
    )
    assert redact(["see (token=f00ba4f00ba4)."], "mask")[0] == ("see (token=[redacted:token:1]).",)


def test_numbers_count_within_the_event_and_equal_secrets_have_equal_numbers() -> None:
    masked, counts = redact(["password=hunter2 and token=f00ba4f00ba4", "", "password=hunter2"], "mask")
    assert masked == (
        "password=[redacted:password:1] and token=[redacted:token:2]",
        "",
        "password=[redacted:password:1]",
    )
    assert counts == (Masked("password", 1), Masked("token", 1))


def test_a_secret_found_in_one_text_leaves_the_others_too() -> None:
    masked, _ = redact(["my password is hunter2", "Saved: hunter2!", "hunter22 is another word"], "mask")
    assert masked == (
        "my password is [redacted:password:1]",
        "Saved: [redacted:password:1]!",
        "hunter22 is another word",
    )


@pytest.mark.parametrize(
    ("texts", "secrets"),
    [
        (("key: sk-proj-abc1", "23456789xyzabc thanks"), ("sk-proj-abc1", "23456789xyzabc")),
        (("ghp_16C7e4", "2F292c6912E7710c", "838347Ae178B4a"), ("ghp_16C7e4", "2F292c6912E7710c", "838347Ae178B4a")),
        (("card 4111 1111 ", "1111 1111"), ("4111 1111", "1111 1111")),
        ((PEM[:60], PEM[60:]), (B64,)),
        (("wifi password", "hunter2"), ("hunter2",)),
        (("what is the wifi password?", "It's hunter2"), ("hunter2",)),
    ],
)
def test_a_secret_that_is_spread_over_fields_is_found(texts: tuple[str, ...], secrets: tuple[str, ...]) -> None:
    masked, counts = redact(texts, "mask")
    assert all(secret not in "|".join(masked) for secret in secrets)
    assert counts


def test_a_whole_secret_at_the_end_of_a_field_takes_nothing_of_the_next() -> None:
    masked, _ = redact(["here: sk-proj-abc123456789xyzabc", "Thanks for the key"], "mask")
    assert masked == ("here: [redacted:key:1]", "Thanks for the key")


@pytest.mark.parametrize(
    "texts",
    [("Please reset my password", "Understood!"), ("what is the token", "Checking"), ("wifi password", "I forgot it")],
)
def test_an_answer_to_a_question_about_a_secret_is_no_secret(texts: tuple[str, str]) -> None:
    assert redact(texts, "mask") == (texts, ())


def test_a_field_named_after_a_secret_gives_away_a_plain_word_too() -> None:
    assert redact(["wifi password", "swordfish"], "mask")[0] == ("wifi password", "[redacted:password:1]")


def test_withheld_a_text_with_a_secret_is_only_its_length() -> None:
    texts = ("my password is hunter2", "nothing here")
    withheld, counts = redact(texts, "withhold")
    assert withheld == ("[withheld:22 characters]", "nothing here")
    assert counts == (Masked("password", 1),)
    assert redact(withheld, "withhold") == (withheld, ())


def test_off_changes_nothing() -> None:
    assert redact(["my password is hunter2"], "off") == (("my password is hunter2",), ())


HIDDEN = ["\u200b", "\u2060", "\ufeff", "\u202e", "\u00ad", "\u200d", "\ufe0f", "\u3164", "\U000e0041", "\x00"]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("try it: sk-proj-Ab12Cd|34Ef56Gh78Ij90Kl12", "try it: [redacted:key:1]"),
        ("card 4111|1111 1111 1111, |thanks", "card [redacted:card:1], thanks"),
        ("my pass|word is hunter2", "my password is [redacted:password:1]"),
        ("s|k-proj-Ab12Cd34Ef56Gh78Ij90Kl12", "[redacted:key:1]"),
    ],
)
def test_a_secret_is_seen_through_what_nobody_sees(text: str, masked: str, hidden: str) -> None:
    once, counts = redact([text.replace("|", hidden), f"a{hidden}b"], "mask")
    assert once == (masked, f"a{hidden}b"), "a text without a secret keeps them"
    assert sum(count.count for count in counts) == 1
    assert redact(once, "mask") == (once, ())


def test_what_nobody_sees_may_also_part_a_secret_from_the_word_before_it() -> None:
    once, _ = redact(["a\u200bsk-proj-Ab12Cd34Ef56Gh78Ij90Kl12 👩\u200d👧"], "mask")
    assert once == ("a\u200b[redacted:key:1] 👩\u200d👧",)


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("password: hunter2xyz[redacted:key:1]", ["hunter2xyz"]),
        ("password: [redacted:key:1]hunter2xyz", ["hunter2xyz"]),
        ("password: hunter2xyz[withheld:22 characters]", ["hunter2xyz"]),
        ("mysql --password Sne3[redacted:key:1]sd8AZjq", ["Sne3", "sd8AZjq"]),
        ("my password is hunt[redacted:key:1]er2", ["hunt", "er2"]),
        ("https://u:hunt[redacted:a:1]er2@h", ["hunt", "er2"]),
        ("https://[redacted:a:1]:hunter2xyz@h", ["hunter2xyz"]),
        ("card[redacted:a:1]4111 1111 1111 1111[redacted:a:1]", ["4111 1111 1111 1111"]),
        (PEM.replace("\n", "\n[redacted:a:1]\n"), [B64]),
    ],
)
def test_a_mark_that_the_user_wrote_hides_no_neighbour(text: str, secrets: list[str]) -> None:
    once, counts = redact([text], "mask")
    assert not any(secret in once[0] for secret in secrets)
    assert counts
    assert redact(once, "mask") == (once, ())


@pytest.mark.parametrize(
    "text",
    ["password: [redacted:key:1]!", "https://[redacted:key:1]@host/x", "my password is [redacted:password:1], thanks"],
)
def test_signs_beside_a_mark_are_no_secret(text: str) -> None:
    assert redact([text], "mask") == ((text,), ())


def test_numbers_go_on_from_those_found_before() -> None:
    assert redact(["password=hunter2"], "mask", found_before=3)[0] == ("password=[redacted:password:4]",)


PIECES = [
    "\u200b",
    "\u00ad",
    "[redacted:key:1]",
    "[withheld:22 characters]",
    "k-proj-Ab12Cd34",
    "Ef56Gh78Ij90",
    *" \n:='\"&,.!()@/-_0",
    "password",
    "my password is ",
    "secret=",
    "token: ",
    "api_key=",
    "sk-",
    "hunter2",
    "abc1",
    "AKIA",
    "A1B2C3D4E5F6G7H8",
    "eyJhbGciOiJIUzI1NiJ9.",
    "eyJzdWIiOiIxMjM0.",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "4111 1111 1111 1111",
    "://a:b1c2@",
    "[redacted:password:1]",
    "[redacted:",
    "Bearer ",
    "パスワードは",
]
MESSY = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(st.lists(MESSY | st.text(max_size=30), min_size=1, max_size=4))
def test_redacting_again_changes_nothing(texts: list[str]) -> None:
    once, _ = redact(texts, "mask")
    assert redact(once, "mask") == (once, ())


@given(st.lists(MESSY, min_size=1, max_size=4))
def test_the_same_texts_are_always_redacted_alike(texts: list[str]) -> None:
    assert redact(texts, "mask") == redact(tuple(texts), "mask")


@given(st.lists(MESSY | st.text(max_size=30), min_size=1, max_size=4))
def test_as_many_texts_come_out_as_went_in_and_those_without_a_count_are_untouched(texts: list[str]) -> None:
    masked, counts = redact(texts, "mask")
    assert len(masked) == len(texts)
    assert bool(counts) == (masked != tuple(texts))
    assert all(re.fullmatch(r"[a-z_]{1,20}", count.kind) and count.count > 0 for count in counts)


ADVERSARIES = [
    "a",
    " ",
    "-",
    "password=",
    "password='",
    'password="',
    "my password is ",
    "the token for a b c d ",
    "pass:",
    "sk-",
    "eyJa.",
    "eyJaaaaaaaaaaa.",
    "://",
    "://:",
    "://a:",
    "-----BEGIN PRIVATE KEY-----\n",
    "LS0tLS1CRUdJTi",
    "4111 1111 1111 1111 ",
    "4 ",
    "4111",
    "authorization: ",
    "--a-",
    "secret_a",
    "identified with '",
    "&amp;",
    "M" * 24 + ".",
    "[redacted:key:1]",
    "://a:b[redacted:key:1]@",
    "pass\u200bword=a1b2 ",
    "\u200b",
]


def processor_seconds(texts: list[str]) -> float:
    """The better of two runs, in processor time of this thread: other work on the machine does not count."""
    seconds = []
    for _ in range(2):
        start = time.thread_time()
        redact(texts, "mask")
        seconds.append(time.thread_time() - start)
    return min(seconds)


@pytest.mark.parametrize("unit", ADVERSARIES)
def test_no_pattern_tries_again_and_again(unit: str) -> None:
    """Twice the text takes about twice the time. The bound is wide; a square would take a thousand times longer."""
    small, large = ((unit * (size // len(unit) + 1))[:size] for size in (60_000, 120_000))
    assert processor_seconds([large]) < 4 * processor_seconds([small]) + 0.5


def test_a_megabyte_of_everything_is_redacted() -> None:
    text = ("".join(ADVERSARIES) + " my password is hunter2. ") * 3000
    (masked,), counts = redact([text[: 1024 * 1024]], "mask")
    assert "hunter2" not in masked
    assert counts


@pytest.mark.parametrize("shape", secret_shapes.SHAPES, ids=lambda shape: shape.pattern.pattern[:30])
def test_every_unbounded_repetition_is_possessive(shape: secret_shapes.Shape) -> None:
    """Read from the patterns: `*`, `+` and `{n,}` stand only with `+` behind them."""
    bare = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "x", shape.pattern.pattern)
    left = re.sub(r"(?:[*+?]|\{[\d,]*\})\+", "", bare)
    assert not re.search(r"\*|\+|\{\d+,\}", left)


def test_a_key_that_begins_with_a_field_of_its_own_is_found_whatever_stands_before_it() -> None:
    masked, counts = redact(["go", "", "", "put", "ghp_16C7e42F292c69", "12E7710c838347Ae178B4a"], "mask")
    assert masked == ("go", "", "", "put", "[redacted:key:1]", "[redacted:key:2]")
    assert counts == (Masked("key", 2),)


def test_the_rest_of_a_key_whose_first_part_is_one_already_is_found_but_a_word_is_not() -> None:
    key = "the key: sk-proj-Ab3dEf6hIj9kLmNo"
    assert redact([key, "PqRsTuVw42 got it"], "mask")[0] == ("the key: [redacted:key:1]", "[redacted:key:2] got it")
    assert redact([key, "Certainly, noted."], "mask")[0] == ("the key: [redacted:key:1]", "Certainly, noted.")
