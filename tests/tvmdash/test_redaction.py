"""What looks like a secret is hidden; what only looks odd stays."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvmdash.dashboard_info import JobResult, Night
from tvmdash.redaction import HIDDEN, blank_out, known_secrets, redact, redact_json, remove_secrets

LETTERS = string.ascii_letters + string.digits


def some(least: int, most: int, letters: str = LETTERS) -> st.SearchStrategy[str]:
    return st.text(letters, min_size=least, max_size=most)


SECRETS = st.one_of(
    st.tuples(st.just("https://hooks.slack.com/services/"), st.builds("T0/B0/{}".format, some(12, 24)), st.just("")),
    st.tuples(st.just(""), st.builds("xoxb-{}".format, some(12, 30)), st.just("")),
    st.tuples(st.just("https://"), st.builds("user:{}".format, some(6, 12, LETTERS + "!$*-_.~")), st.just("@host/x")),
    st.tuples(st.just("Authorization: Bearer "), some(8, 30), st.just("")),
    st.tuples(st.just('{"authorization": "Bearer '), some(8, 30), st.just('"}')),
    st.tuples(st.just(""), st.builds("hf_{}".format, some(34, 37)), st.just("")),
    st.tuples(
        st.just(""), st.builds("{}{}".format, st.sampled_from(["ghp_", "gho_", "ghs_"]), some(36, 36)), st.just("")
    ),
    st.tuples(st.just(""), st.builds("github_pat_{}".format, some(22, 80, LETTERS + "_")), st.just("")),
    st.tuples(
        st.just(""), st.builds("AKIA{}".format, some(16, 16, string.ascii_uppercase + string.digits)), st.just("")
    ),
    st.tuples(
        st.just("-----BEGIN OPENSSH PRIVATE KEY-----\n"),
        st.builds("{}\n{}".format, some(64, 64), some(20, 40)),
        st.just("\n-----END OPENSSH PRIVATE KEY-----"),
    ),
    st.tuples(st.just("SLACK_BOT_TOKEN="), some(8, 20), st.just("")),
    st.tuples(st.just("password="), some(8, 20), st.just("")),
)
"""What stands before a secret, the secret, what stands behind it."""
SURROUNDINGS = st.sampled_from(["{}", "error: {} was refused", "line 1\n{}\nline 3", "'{}'", '"{}",', "({})"])


@given(SECRETS, SURROUNDINGS)
def test_a_secret_is_hidden_wherever_it_stands(parts: tuple[str, str, str], around: str) -> None:
    before, secret, behind = parts
    text = around.format(before + secret + behind)
    assert not [line for line in secret.split("\n") if line in redact(text)]
    assert not [line for line in secret.split("\n") if line in blank_out(text)]
    assert len(blank_out(text)) == len(text)
    as_json = redact(json.dumps({"told": text}))
    assert not [line for line in secret.split("\n") if line in as_json]
    assert json.loads(as_json).keys() == {"told"}, "JSON stays JSON"
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "c7b458e94a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "sha256:" + "ab" * 32,
        "/home/me/.config/tvmdash/slack_token",
        "me@example.org wrote to git@github.com:apache/tvm.git",
        "20261121T031500Z",
        "https://github.com/apache/tvm/commit/c7b458e94",
        "http://localhost:8080/a@b",
        "ssh://git@host:22/x",
        "the bearer of bad news",
        "max_tokens: 128, tokens=128",
        "The token is missing. Write it into ~/.config/tvmdash/slack_token.",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "monkey=banana; key=5; half_life=3",
        "f8a3c5717476489 0x7ffd AKIA hf_hub xoxo",
        "akiadescription ghp_ pypi",
    ],
)
def test_common_things_stay(text: str) -> None:
    assert redact(text) == text
    assert blank_out(text) == text


def test_the_end_of_a_private_key_is_hidden_when_its_begin_was_cut_off() -> None:
    text = "bQ" * 20 + "\n" + "xyz12=\n-----END RSA PRIVATE KEY-----\nafter"
    assert redact(text) == HIDDEN + "\nafter"


def test_values_of_fields_that_are_named_as_secrets_are_known() -> None:
    config = {"active": True, "hub": {"api_key": "correct-horse"}, "token_file": "/etc/token", "max_tokens": 128}
    environment = {"SLACK_BOT_TOKEN": "battery-staple", "PGPASSWORD": "hunter22", "PATH": "/usr/bin", "TOKEN": "on"}
    known = known_secrets(config, environment)
    assert known == ("battery-staple", "correct-horse", "hunter22")
    told = "it said correct-horse and hunter22 of /etc/token"
    assert redact(told, known) == f"it said {HIDDEN} and {HIDDEN} of /etc/token"


@pytest.mark.parametrize(
    "config",
    [
        {"auth": "Bearer abc"}, {"pw": "abc"}, {"pass_phrase": "open sesame"}, {"passPhrase": "x"}, {"PWD": "x"},
        {"source": "hf_abc123"}, {"source": "hf_abc"}, {"header": "Bearer abcdef"}, {"signing-key": "x"},
        {"headers": {"X-Api-Key": "x"}}, {"argv": ["--user", "me", "--password", "x"]}, {"tokens": ["x", "y"]},
        {"auth": {"user": "u", "value": "x"}}, {"hub": [{"jwt": "x"}]}, {"cookie": "x"}, {"dsn": "x"},
        {"model": "aGVsbG8gd29ybGQxMjM0NTY3ODkwQUJD"}, {"Authorization": "x"}, {"sas": "x"},
    ],
)  # fmt: skip
def test_no_value_of_a_config_that_may_be_a_secret_is_shown(config: dict[str, object]) -> None:
    def leaves(value: object) -> list[object]:
        items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
        return [value] if items is None else [leaf for item in items for leaf in leaves(item)]

    assert {leaf for leaf in leaves(remove_secrets(config)) if leaf not in ("--user", "me", "--password")} == {HIDDEN}


@pytest.mark.parametrize(
    "config",
    [
        {"engines": ["tvm", "onnxruntime"]}, {"passes": ["-FoldConstant"], "bypass": "yes"}, {"author": "Ada"},
        {"model": "ResNet50_v1_ImageNet1K_Weights_V2"}, {"commit": "c7b458e94a1b2c3d4e5f60718293a4b5c6d7e8f9"},
        {"devices": {"sim": {"key": "sim", "kind": "cpu"}}}, {"patterns": "x", "pattern": "y"}, {"keys": [1, 2]},
        {"title": "Time of a token"}, {"secondary": "a", "compass": "b", "monkey": "c"},
    ],
)  # fmt: skip
def test_what_is_no_secret_of_a_config_is_shown(config: dict[str, object]) -> None:
    assert remove_secrets(config) == config


def test_a_secret_of_a_config_is_known_by_its_field_wherever_it_stands() -> None:
    config = {
        "auth": "Bearer abc1234", "pw": "tigers", "pass_phrase": "correct horse",
        "hub": {"tokens": ["first1", "second"]},
        "login": {"credentials": {"user": "adalove", "value": "zyxwvu"}}, "argv": ["--password", "hunter22", "--fast"],
        "headers": {"X-Api-Key": "k-12345"},
        "pass": "FoldConstant", "author": "Ada Lovelace", "auth_method": "kerberos5",
    }  # fmt: skip
    known = set(known_secrets(config))
    assert known >= {"abc1234", "tigers", "correct horse", "first1", "second", "zyxwvu", "hunter22", "k-12345"}
    assert not known & {"FoldConstant", "Ada Lovelace", "kerberos5", "--fast"}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("found hf_abc123 there", "hf_abc123"),
        ("see https://store.example/x?sv=1&sig=abcd%2Fefg&se=2", "abcd%2Fefg"),
        ('said {"password": "tiger"}', "tiger"),
        ("PASS_PHRASE=tiger", "tiger"),
        ("pw=tiger", "tiger"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIi"),
        ("key sk-ant-api03-abcdefghijklmnop", "abcdefghijklmnop"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "1234567890"),
    ],
)
def test_more_kinds_of_secrets_are_hidden_in_any_text(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert redact(redact(text)) == redact(text)


def test_a_config_is_shown_without_secrets_by_name_and_by_value() -> None:
    config = {"api_key": 5, "remote": "https://me:pw@host/x", "list": [{"webhook_url": "x"}, "hf_" + "a1" * 17, 5]}
    assert remove_secrets(config) == {
        "api_key": HIDDEN,
        "remote": f"https://{HIDDEN}@host/x",
        "list": [{"webhook_url": HIDDEN}, HIDDEN, 5],
    }


def test_a_record_of_an_older_dashboard_is_read_without_its_secrets() -> None:
    token = "xoxb-123456789012-abcdef"
    step = {"stage": "run", "state": "failed", "message": f"said {token}", "stamp": "x", "log_tail": f"env {token}"}
    job = {"kind": "experiment", "name": "e", "title": "", "description": token, "steps": [step]}
    artifact = {"facts": {"remote": "https://me:pw@host/tvm"}}
    value = {"stamp": "x", "state": "complete", "notes": [token], "artifacts": [artifact], "jobs": [job]}
    shown = repr(Night.from_json(value, Path("x.json"))) + repr(JobResult.from_json(job, Path("x.jsonl")))
    assert token not in shown
    assert "me:pw" not in shown
    assert shown.count(HIDDEN) == 8


def test_json_keeps_its_form() -> None:
    value = {"a": [1, None, True, 2.5, "x"], "b": ("y",)}
    assert json.dumps(redact_json(value)) == json.dumps(value)


@pytest.mark.parametrize(
    "secret", ['a"quoted" one', "two\nlines of it", "back\\slash and more", "gr\u00fc\u00dfe-an-alle"]
)
def test_a_known_secret_that_json_writes_otherwise_is_hidden_at_any_depth(secret: str) -> None:
    value = {"jobs": [{"steps": [{"message": f"it is {secret}!"}], f"key {secret}": 1}]}
    shown = redact_json(value, (secret,))
    assert shown == {"jobs": [{"steps": [{"message": f"it is {HIDDEN}!"}], f"key {HIDDEN}": 1}]}
    assert redact_json(value, ("something else",)) == value


@pytest.mark.parametrize(
    "piece", ["A" * 17 + " ", "A" * 17 + r"\n", "eyJaaaaaaaa-", "-----BEGIN PRIVATE KEY", "token=_"]
)
def test_a_long_text_that_seems_to_begin_secrets_everywhere_is_read_once(piece: str) -> None:
    text = f"private key token= {piece * (250_000 // len(piece))}"
    assert len(redact(text)) <= len(text)
