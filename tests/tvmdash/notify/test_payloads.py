"""Messages for Slack: within the limits, literal, and pinging nobody but whom they shall."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.slack import server
from tvmdash.common import structured
from tvmdash.notify.payloads import (
    MAX_SECTION,
    Part,
    Payload,
    build,
    code,
    count_bytes,
    escape,
    format_bold,
    format_mention,
    link,
)

NASTY = st.text(st.one_of(st.sampled_from("<>&`*_~@!#|\n\r\t\0😀é中\u202e\ud800"), st.characters()), max_size=400)


def check(message: Payload) -> None:
    server.check_content(message.to_json())


@given(NASTY, NASTY, st.lists(NASTY, max_size=5))
@settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
def test_whatever_the_texts_are_slack_takes_the_message_and_nobody_is_pinged(
    head: str, about: str, texts: list[str]
) -> None:
    parts = [Part(f"{format_bold(text)} x {escape(text, 900)}\n{code(text, 900)}") for text in texts]
    message = build(f"{head} x", escape(about, 300), parts, link("https://x.org/a b", head))
    check(message)
    assert not server.PING.findall("".join(text for block in message.blocks for _, text in server.texts_of(block)))


@pytest.mark.parametrize("text", ["<!channel>", "<@U012ABCDEF>", "<!subteam^S012ABCDEF>", "<https://evil.org|ok>"])
def test_an_entity_in_a_name_stays_text(text: str) -> None:
    for markup in (escape(text), format_bold(text), code(text), link("https://x.org", text)):
        assert text not in markup
        assert "&lt;" in markup


def test_channels_and_links_in_texts_are_not_turned_into_pings_by_slack() -> None:
    message = build("v", "a", [Part(escape("@here #general https://x.org"))])
    sections = [block for block in message.blocks if block["type"] == "section"]
    assert [block["text"]["verbatim"] for block in sections] == [True]


@pytest.mark.parametrize(
    ("identity", "markup"),
    [
        ("U012ABCDEF", "<@U012ABCDEF>"),
        ("W012ABCDEF", "<@W012ABCDEF>"),
        ("S012ABCDEF", "<!subteam^S012ABCDEF>"),
        ("G012ABCDEF", "<#G012ABCDEF>"),
        ("@tqchen", None),
        ("channel", None),
        ("!channel", None),
        ("u012abcdef", None),
        ("U012ABCDEF> <!channel", None),
        ("U012ABCDEF\n", None),
        ("", None),
    ],
)
def test_only_slack_ids_can_ping(identity: str, markup: str | None) -> None:
    assert format_mention(identity) == markup


def test_an_escaped_text_is_never_cut_within_an_escape() -> None:
    for limit in range(20, 40):
        cut = escape("&" * 50, limit)
        assert cut.removesuffix(" …").replace("&amp;", "") == ""
        assert count_bytes(cut) <= limit


def test_a_long_tail_keeps_its_end() -> None:
    tail = code("\n".join(f"line {number}" for number in range(1000)), 200)
    assert tail.endswith("line 999\n```")
    assert count_bytes(tail) <= 200


def test_backticks_do_not_end_a_block_of_code() -> None:
    assert code("a ``` b").count("```") == 2


@pytest.mark.parametrize("count", [3, 4, 5, 9])
def test_backticks_in_words_do_not_begin_a_block_of_code(count: int) -> None:
    assert "```" not in escape("`" * count)
    check(build("v", escape("`" * count), [Part(format_bold("`" * count))]))


def test_a_message_that_is_too_long_keeps_its_beginning_and_says_and_pings_what_is_missing() -> None:
    parts = [Part(f"{number} " + "x" * 2500, pings=(f"<@U00000000{number}>",)) for number in range(9)]
    message = build("verdict", "about", parts, link("https://x.org/n.html", "website"))
    check(message)
    last = message.blocks[-1]["elements"][0]["text"]
    assert message.blocks[2]["text"]["text"].startswith("0 ")
    assert last == " ".join(
        ("… and 5 more omitted here. <https://x.org/n.html|website>", *(part.pings[0] for part in parts[4:]))
    )


def test_hundreds_of_small_parts_share_sections_and_stay_within_the_limit_of_blocks() -> None:
    check(build("v", "a", [Part(f"ok {number}", group="g") for number in range(900)]))
    single = build("v", "a", [Part(f"bad {number}") for number in range(900)])
    check(single)
    assert len(single.blocks) == 50
    assert "853 more" in single.blocks[-1]["elements"][0]["text"]


def test_a_thousand_pings_of_what_had_no_room_fit() -> None:
    pings = tuple(f"<@U{number:09d}>" for number in range(1000))
    check(build("v", "a", [Part("x" * MAX_SECTION)] * 5 + [Part("y", pings=pings)]))


def test_emoji_count_double_as_in_slacks_own_count() -> None:
    message = build("😀" * 300, "", [Part(escape("😀" * 5000))])
    check(message)
    assert count_bytes("😀") == 2


def test_a_link_that_is_no_web_address_is_text() -> None:
    assert link("javascript:alert(1)", "page") == "page"
    assert link("https://user:pass@x.org", "page") == "page"
    assert link("https://x.org/>|<!channel>", "page") == "<https://x.org/%3E%7C%3C!channel%3E|page>"


def test_a_message_reads_well_as_plain_text() -> None:
    message = build(
        "❌ A & B failed",
        escape("Night <1>"),
        [Part(f"{format_bold('A & B')} {link('https://x.org', 'page')}\n{code('a < b')}")],
    )
    assert message.plain() == "❌ A & B failed\n\nNight <1>\n\nA & B page (https://x.org)\na < b\n"


def test_a_message_survives_being_stored_and_marking_it_changes_its_digest() -> None:
    message = build("v", "a", [Part("x")])
    assert structured.from_json(Payload, message.to_json(), "slack.json") == message
    assert message.marked("late").digest != message.digest
    check(message.marked("<late>"))
