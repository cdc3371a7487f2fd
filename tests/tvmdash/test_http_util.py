"""What a server answers is a stranger's: only strict JSON counts as any."""

from __future__ import annotations

import pytest

from tvmdash.common.http_util import Answer


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"\xff", b'{"id": NaN}', b'{"id": 1e999}', b'{"id": 1, "id": 2}', b"[" * 101 + b"]" * 101,
     b"[" * 100_000, b"9" * 5000, b'"\\ud800"'],
)  # fmt: skip
def test_what_is_no_strict_json_is_no_answer(body: bytes) -> None:
    assert Answer(200, {}, body).parsed() is None


def test_strict_json_is_parsed() -> None:
    assert Answer(200, {}, b'{"id": 5, "text": "\xc3\xa4"}').parsed() == {"id": 5, "text": "ä"}
