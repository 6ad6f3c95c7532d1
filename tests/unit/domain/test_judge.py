"""What is no summary is told from what is one: a table of answers as servers and models give them (T13, T14, S4)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace_actors.domain.cleaning import clean
from pace_actors.domain.judge import judge
from pace_actors.domain.prompt import FOLD_INSTRUCTIONS, fold_instructions

BLANK = [
    "",
    "   \n\t\n ",
    "null",
    "None",
    '""',
    "''",
    "N/A",
    "[]",
    "{}",
    '{"summary": ""}',
    '{"summary": null}',
    '{"summary": ["", " "]}',
    '["", ""]',
    "# Summary",
    "## Updated summary\n\n",
    "**Summary:**",
    "Summary:",
    "...",
    "…",
    "---\n***\n---",
    "- \n- \n-",
    "1.\n2.\n3.",
    "\u200b\u200b",
    "\u200b \ufeff",
    "undefined",
    "`null`",
    "<think>The user wants a summary.</think>",
    "<think>I should write four sentences, the user is Ann",
    "```json\n```",
    "(empty)",
    "No summary.",
    "🙂",
]

ERRORS = [
    "Error: connect ECONNREFUSED 127.0.0.1:8080",
    "error: model not loaded",
    "ERROR 500: internal",
    "API Error: 529 overloaded",
    "Internal Server Error",
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable: Loading model",
    "504 Gateway Time-out",
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 20",
    "Too Many Requests",
    "Not Found",
    "404: Not Found",
    "404 page not found",
    "Service temporarily unavailable. Please try again later.",
    "Bad Gateway",
    '{"error": "model is loading"}',
    '{"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": 429}}',
    '[{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}]',
    '{"object": "error", "message": "The model `x` does not exist.", "code": 404}',
    '{"detail": "Not Found"}',
    '{"detail": [{"loc": ["body", "model"], "msg": "field required", "type": "value_error.missing"}]}',
    '{"message": "Unauthorized", "status": 401}',
    '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
    '```json\n{"error": "out of memory"}\n```',
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body></html>",
    "<!DOCTYPE html>\n<html><body>Just a moment...</body></html>",
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>',
    "Traceback (most recent call last):\n  File \"server.py\", line 10, in <module>\n    main()\nKeyError: 'choices'",
    "ValueError: Requested tokens (5000) exceed context window of 4096",
    "httpx.ReadTimeout: The read operation timed out",
    "java.lang.NullPointerException: Cannot invoke method\n\tat com.acme.Server.main(Server.java:12)",
    "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached'}}",
    "Rate limit exceeded. Please retry after 20 seconds.",
    "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000.",
    "You exceeded your current quota, please check your plan and billing details.",
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5012 tokens.",
    "The model `gpt-9` does not exist or you do not have access to it.",
    "model 'llama9' not found, try pulling it first",
    "The server had an error while processing your request. Sorry about that!",
    "Incorrect API key provided: sk-12***89.",
    "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
    "Request timed out.",
    "Connection refused",
    "curl: (7) Failed to connect to 127.0.0.1 port 8080: Connection refused",
    "CUDA out of memory. Tried to allocate 20.00 MiB",
    "No models loaded. Please load a model in the developer page.",
    "thread 'main' panicked at src/main.rs:10:5:\nindex out of bounds",
    "Unexpected endpoint or method. (POST /chat/completions). Returning 200 anyway",
    "An unexpected error occurred.",
    "Overloaded",
    'data: {"error": {"message": "stream failed"}}',
    "エラー：接続できません",
    "Fehler: Verbindung abgelehnt",
    "Something went wrong. Please try again.",
    "Failed to load model: /models/x.gguf",
    "prompt is too long: 208310 tokens > 200000 maximum",
]

REFUSALS = [
    "I'm sorry, but I can't assist with that.",
    "I’m sorry, but I can’t help with this request.",
    "I am sorry, but I cannot summarize this conversation.",
    "Sorry, I can't do that.",
    "I cannot fulfill your request.",
    "I can't provide a summary of this content.",
    "I'm unable to help with that.",
    "I won't be able to summarize this.",
    "As an AI language model, I do not have access to previous conversations.",
    "I'm just an AI and don't have memory.",
    "Unfortunately, I cannot process this text.",
    "I apologize, but I'm not able to do that.",
    "I don't see any conversation to summarize.",
    "Please provide the conversation you would like me to summarize.",
    "Sure! Please share the conversation.",
    "Sure, could you please paste the transcript?",
    "It seems like you haven't provided any text to summarize.",
    "There is no conversation to summarize.",
    "How can I help you today?",
    "Lo siento, pero no puedo ayudar con eso.",
    "Je suis désolé, mais je ne peux pas résumer cette conversation.",
    "Es tut mir leid, aber ich kann dabei nicht helfen.",
    "Mi dispiace, ma non posso aiutarti.",
    "Desculpe, mas não posso ajudar com isso.",
    "К сожалению, я не могу помочь с этим.",
    "Maaf, saya tidak bisa membantu.",
    "申し訳ありませんが、その要求にはお応えできません。",
    "抱歉，我无法提供帮助。",
    "对不起，我不能总结这段对话。",
    "죄송합니다. 도와드릴 수 없습니다.",
]

ECHOES = [
    FOLD_INSTRUCTIONS,
    fold_instructions(4),
    fold_instructions(4)[:200],
    "Write the updated summary that replaces the earlier one, in at most 4 sentences.",
    "Invent nothing: write only what the earlier summary or the new turns say.",
    "You keep the memory of a conversation between a user and an assistant. The user is Ann.",
    "**Instructions:** " + fold_instructions(2).upper(),
    "Answer with the summary alone, without a heading",
]

GOOD = [
    "The user is Ann, who lives in Oslo and plans to sail to Bergen on 3 May. The assistant booked a berth.",
    "The user gets a 500 Internal Server Error from their billing API and asks how to debug it.",
    "The user's Python script fails with ValueError: invalid literal; the assistant suggests checking the input file.",
    "Error handling in the user's Flask app is discussed; the user wants a 404 page in Norwegian.",
    "The user cannot attend the meeting on Friday and asks the assistant to move it to Monday at 10:00.",
    "The user says they can't sleep and that they are sorry for missing the deadline of 12 June.",
    "The user is sorry to have missed the call; the assistant could not reach Dr. Lee.",
    "Ann asks about rate limits of the GitHub API; the assistant explains that 5,000 requests an hour are possible.",
    "The assistant refuses to give medical advice; the user wants to see a doctor in Lyon next week.",
    "Unfortunately for the user, the flight to Rome was cancelled; they are rebooked for 7 April.",
    "Traceback analysis: the user shares a stack trace and the assistant finds a missing key.",
    "Access denied messages keep appearing on the user's laptop; the assistant suggests resetting permissions.",
    "Timeouts trouble the user's web shop. The assistant proposes a cache; the user will try it tonight.",
    "The user writes a thesis on null hypotheses and needs 30 samples by Tuesday.",
    "None of the options fit the user, who wants a red bicycle under 400 euros.",
    "Summary: The user is called Miguel, is allergic to nuts, and plans a dinner for six on Saturday.",
    "# Summary\nThe user, Kenji, is learning Norwegian and has an exam on 14 December.",
    "- The user is Priya.\n- She has two cats.\n- She moves to Pune in March.",
    "Ann.",
    "The user wants: bread, milk, and 2 eggs.",
    "Der Nutzer heißt Jonas, wohnt in Kiel und möchte am 5. Mai nach Rom fliegen.",
    "Der Nutzer kann am Freitag leider nicht kommen und bittet um einen neuen Termin.",
    "L'utilisateur s'appelle Luc ; il ne peut pas venir lundi et veut déplacer le rendez-vous au 3 juin.",
    "La usuaria se llama Marta, no puede comer gluten y busca una receta para cuatro personas.",
    "L'utente si chiama Paolo e vuole prenotare un tavolo per due alle 20.",
    "O usuário chama-se Rui e procura um apartamento em Lisboa por até 900 euros.",
    "Пользователя зовут Олег, он живёт в Туле и ищет врача на вторник.",
    "ユーザーは健二で、12月14日に試験がある。アシスタントは勉強計画を作成した。",
    "ユーザーはエラーが出て印刷できないと述べ、アシスタントは再起動を提案した。",
    "用户名叫李雷，住在上海，计划五月三日去北京。助手已经预订了火车票。",
    "用户抱歉错过了电话，希望周二再联系。",
    "사용자의 이름은 민수이고 서울에 살며 5월 3일에 부산으로 갈 예정이다.",
    "사용자는 죄송하다고 말하며 금요일 회의에 참석할 수 없다고 한다.",
    "Pengguna bernama Sari, tinggal di Bandung, dan ingin memesan tiket kereta.",
    "The conversation between the user and the assistant is about a boat named Freya; the user keeps it in Molde.",
    "He says the server is busy at lunch, so the user books a table for 14:00 instead.",
    "Conflict at work troubles the user; she has a talk with her manager on 9 May.",
    "Please note that the user prefers tea to coffee and lives in Leeds.",
    "The user asks the assistant to keep names, numbers and dates in the notes for the trip to Rome.",
    "The user says there is no conversation with the landlord yet and wants a letter by Friday.",
    "Not found yet: the user still looks for the lost key of the blue car; the assistant suggests the garden.",
    "The user, a nurse, reports 3 errors in the rota and asks for a corrected plan for week 12.",
    "Sure-footed hikers are the user's audience; she writes a guide of 40 pages about Lofoten.",
    "The model railway of the user is not found in shops; the user wants a 1:87 locomotive.",
    "The user is overloaded with work and plans a week off from 2 July.",
    "Gone are the user's worries about the exam: she passed with 92 points.",
    "I. The user is Ann. II. She sails on 3 May.",
    '{"summary": "The user is Ann and sails to Bergen on 3 May."}',
    '["The user is Ann.", "She sails to Bergen on 3 May."]',
    "<think>Short and clear.</think>The user is Ann and sails to Bergen.",
    "```\nThe user is Ann and sails to Bergen.\n```",
]


def verdict(answer: str) -> str:
    """The one finding on an answer, or `good`."""
    findings = judge(clean(answer))
    return next((name for name, found in findings._asdict().items() if found), "good")


def test_the_table_is_as_long_as_it_should_be() -> None:
    assert len([*BLANK, *ERRORS, *REFUSALS, *ECHOES]) >= 60
    assert len(GOOD) >= 40


@pytest.mark.parametrize("answer", BLANK)
def test_a_blank_answer_is_blank(answer: str) -> None:
    assert verdict(answer) == "blank"


@pytest.mark.parametrize("answer", ERRORS)
def test_the_text_of_an_error_is_known(answer: str) -> None:
    assert verdict(answer) == "error_text"


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_is_known(answer: str) -> None:
    assert verdict(answer) == "refusal"


@pytest.mark.parametrize("answer", ECHOES)
def test_an_echo_of_the_instructions_is_known(answer: str) -> None:
    assert verdict(answer) == "echo"


@pytest.mark.parametrize("answer", GOOD)
def test_a_summary_that_tells_of_errors_and_of_what_cannot_be_done_is_one(answer: str) -> None:
    assert verdict(answer) == "good"


@given(st.text(max_size=400))
def test_any_text_is_judged_and_at_most_one_thing_is_found(answer: str) -> None:
    assert sum(judge(clean(answer))) <= 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=9
    )
)
def test_any_json_is_judged(value: object) -> None:
    assert sum(judge(clean(json.dumps({"summary": value})))) <= 1


def test_deeply_nested_json_is_judged() -> None:
    assert judge(clean("[" * 100_000 + "]" * 100_000)).blank


def test_a_summary_that_begins_with_our_words_and_then_goes_on_is_an_echo_only_for_a_long_run() -> None:
    short = "A conversation between a user and an assistant about boats: the user keeps one in Molde and sails it."
    assert verdict(short) == "good"
