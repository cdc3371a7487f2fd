"""Damage for tests of what reads files: JSON with odd values in it, broken bytes, lines of both.

Hypothesis draws one number a case, of which everything else follows: ten times as many cases as with a draw for every
choice, and a case that fails is shown whole.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from tests.thorough import examples

TEXTS = (
    "", " ", "\0", "a\0b", "..", "../../x", "/", "~", "-rf", "\ud800", "\u202egnp.exe", "\ufeff", "e\u0301", "\x1b[31m",
    "\r\n", "\u2028", "x" * 5000, "%s{}$(x)`y`", "00010101T000000Z", "99991231T235959Z", "20260230T031500Z",
    "20261121T235960Z", "20261121t031500z", "20261121T031500Z", "NaN", "null", "*", "@", "~x@y", "2026-11-21T03:15:00Z",
)  # fmt: skip
NUMBERS = (0, -1, 1, 2, 2**31, 2**63, -(2**63), 10**30, 10**299, 0.0, -0.0, 5e-324, 1e308, -1e308, 0.1, 1e16)
GARBAGE = (
    b"", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"[" * 3000, b'{"a":' * 2000, b"NaN", b"1e999", b"9" * 5000,
    b"null", b"[]", b"{}", b"5", b'"x"', b"true", b'{"a": 1, "a": 2}', b'"\\ud800"', b"<<<<<<< HEAD", b"\x80" * 50,
)  # fmt: skip


def the_same_each_time(few: int, many: int) -> settings:
    """The settings of a property that is tried with the same cases in each run, many of them by `run.sh --slow`.

    Cases are not shrunk: no number is simpler than another.
    """
    return settings(examples(few, many), derandomize=True, database=None, phases=(Phase.explicit, Phase.generate))


def cases(make: Callable[[random.Random], Any]) -> st.SearchStrategy[Any]:
    """What `make` makes of a source of chances, another one each time."""
    return st.integers(0, 2**64 - 1).map(lambda seed: make(random.Random(seed)))


def files_like(value: Any) -> st.SearchStrategy[bytes]:
    """What may lie where a file with `value` is expected."""
    return cases(lambda chance: make_file(chance, value))


def lines_like(*lines: Any) -> st.SearchStrategy[bytes]:
    """What may lie where a file of such lines is expected."""
    return cases(lambda chance: make_lines(chance, lines))


def make_file(chance: random.Random, value: Any) -> bytes:
    if chance.random() < 0.6:
        return dump(change(chance, value))
    return damage(chance, dump(value))


def make_lines(chance: random.Random, lines: Sequence[Any]) -> bytes:
    """Lines of which some are like these, foreign or broken, in any order, some twice."""
    made = [_dump_line(line) for line in lines[: chance.randint(0, len(lines))]]
    for line in chance.choices(lines, k=chance.randint(1, len(lines) + 2)):
        how = chance.random()
        if how < 0.3:
            made.append(_dump_line(line))
        elif how < 0.7:
            made.append(_dump_line(change(chance, line)))
        else:
            made.append(damage(chance, _dump_line(line)))
    return b"\n".join(made) + chance.choice((b"\n", b"", b"\r\n", b"\n\n"))


def dump(value: Any) -> bytes:
    """`value` as a file holds it; half of a surrogate pair as an escape."""
    return json.dumps(value, indent=1).encode()


def _dump_line(value: Any) -> bytes:
    return json.dumps(value).encode()


def make_text(chance: random.Random) -> str:
    if chance.random() < 0.6:
        return chance.choice(TEXTS)
    return "".join(chance.choice(string.printable + "äß☃\U0001f600") for _ in range(chance.randint(0, 8)))


def make_scalar(chance: random.Random) -> Any:
    kind = chance.randrange(6)
    if kind == 0:
        return chance.choice((None, True, False))
    if kind in (1, 2):
        return chance.choice(NUMBERS)
    if kind == 3:
        return chance.choice((chance.randint(-5, 300), chance.gauss(0, 10), math.exp(chance.uniform(-50, 50))))
    return make_text(chance)


def make_value(chance: random.Random, depth: int = 2) -> Any:
    """Anything that JSON may hold."""
    kind = chance.random() if depth else 0.0
    if kind < 0.7:
        return make_scalar(chance)
    size = chance.randint(0, 3)
    if kind < 0.85:
        return [make_value(chance, depth - 1) for _ in range(size)]
    return {make_text(chance): make_value(chance, depth - 1) for _ in range(size)}


def change(chance: random.Random, value: Any) -> Any:
    """`value`, in which up to three places are gone, of another type, doubled, or hold what another place did."""
    whole = [copy.deepcopy(value)]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = _list_places(whole)
        holder, key = chance.choice(places)
        how = chance.choice(("odd", "odd", "odd", "gone", "more", "inside", "other", "near"))
        if how == "odd":
            holder[key] = make_value(chance)
        elif how == "gone" and holder is not whole:
            del holder[key]
        elif how == "more" and isinstance(holder, dict):
            holder[make_text(chance)] = make_value(chance)
        elif how == "more" and holder is not whole:
            holder.append(copy.deepcopy(holder[key]))
        elif how == "inside":
            holder[key] = [holder[key]]
        elif how == "near":
            holder[key] = _make_near(chance, holder[key])
        elif how == "other":
            other, name = chance.choice(places)
            holder[key] = copy.deepcopy(other[name])
    return whole[0]


def _make_near(chance: random.Random, value: Any) -> Any:
    """A value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        number = chance.choice(NUMBERS)
        return int(number) if isinstance(value, int) and abs(number) < 1e300 else number
    if isinstance(value, str):
        return make_text(chance)
    return type(value)() if isinstance(value, (list, dict)) else value


def _list_places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *_list_places(value[key]))]


def damage(chance: random.Random, raw: bytes) -> bytes:
    """`raw`, cut anywhere, with flipped bits, garbage between, or parts doubled or gone."""
    for _ in range(chance.choice((1, 1, 2))):
        at, end = sorted((chance.randint(0, len(raw)), chance.randint(0, len(raw))))
        how = chance.choice(("cut", "cut", "flip", "flip", "garbage", "gone", "twice", "only"))
        if how == "cut":
            raw = raw[:at]
        elif how == "flip" and at < len(raw):
            raw = raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]
        elif how == "garbage":
            raw = raw[:at] + _make_garbage(chance) + raw[at:]
        elif how == "gone":
            raw = raw[:at] + raw[end:]
        elif how == "twice":
            raw = raw[:end] + raw[at:end] + raw[end:]
        elif how == "only":
            raw = _make_garbage(chance)
    return raw


def _make_garbage(chance: random.Random) -> bytes:
    return chance.choice(GARBAGE) if chance.random() < 0.6 else chance.randbytes(chance.randint(0, 30))


KINDS = ("folder", "full folder", "pipe", "loop", "nowhere", "device", "nothing")


def put_something_else(chance: random.Random, path: Path, what: str = "") -> str:
    """In place of the file a folder, a pipe, a link that leads nowhere, to itself or to a device, or nothing; which."""
    what = what or chance.choice(KINDS)
    path.unlink()
    if what in {"folder", "full folder"}:
        path.mkdir()
    if what == "full folder":
        (path / "x").write_text("x")
    elif what == "pipe":
        os.mkfifo(path)
    elif what in {"loop", "nowhere", "device"}:
        path.symlink_to({"loop": path.name, "nowhere": "nowhere", "device": "/dev/zero"}[what])
    return what
