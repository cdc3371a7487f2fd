"""Files and stamps."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tvmdash import common
from tvmdash.errors import DashboardError

REPO = Path(__file__).resolve().parent.parent.parent
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
)


@given(VALUES)
def test_what_is_dumped_is_read_back(value: common.Json) -> None:
    assert common.parse_json(common.dump_json(value).encode(), "x") == value


@given(st.integers(-2_000_000_000, 250_000_000_000))
def test_a_stamp_is_its_moment(seconds: int) -> None:
    aware = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
    assert common.parse_stamp(common.stamp_of(aware)) == aware
    assert common.is_stamp(common.stamp_of(aware))


@pytest.mark.parametrize(
    "text",
    [
        "", "20261121", "20261321T000000Z", "20261121T250000Z", "20261121T031500Z ", "\u0661" * 8 + "T000000Z",
        "20260230T031500Z", "20261121T235960Z", "20261121t031500z", "00010101T000000Z", "99991231T235959Z",
    ],
)  # fmt: skip
def test_what_is_no_stamp_is_refused(text: str) -> None:
    with pytest.raises(DashboardError, match="is not a stamp"):
        common.parse_stamp(text)
    assert not common.is_stamp(text)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b'{"a": 1,}', "line 1, column"),
        (b'{"a": [1, {"b": NaN}]}', "place: $.a[1].b: NaN is not valid JSON"),
        (b"[-Infinity]", "$[0]: -Infinity"),
        (b'{"a": 1.5, "b": 1e999}', "$.b: 1e999 is out of range"),
        (b"[-1E400]", "$[0]: -1E400 is out of range"),
        (b'[NaN, {"a": 1,}]', "place: NaN is not valid JSON"),
        (b"1" * 301, "301 digits"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b'{"a": 1, "b": 2, "a": 3}', "duplicate key 'a'"),
        (b'["\\ud800"]', "unpaired surrogate"),
        (b'{"\\uDFFF": 1}', "unpaired surrogate"),
        (b"[" * 101 + b"]" * 101, "levels deep"),
        (b"[" * 100000, "levels deep"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "levels deep"),
    ],
)
def test_json_that_is_not_strict_is_refused_in_words(raw: bytes, words: str) -> None:
    with pytest.raises(DashboardError, match=r"^place: ") as caught:
        common.parse_json(raw, "place")
    assert words in str(caught.value)


def test_a_duplicate_key_is_found_in_the_time_that_reading_takes() -> None:
    raw = b"{" + b",".join(b'"%d": 1' % number for number in range(500_000)) + b', "499999": 1}'
    with pytest.raises(DashboardError, match="duplicate key '499999'"):
        common.parse_json(raw, "place")


def test_whole_pairs_and_deep_but_not_too_deep_values_are_read() -> None:
    assert common.parse_json(b'"\\ud83d\\ude00"', "x") == "\U0001f600"
    assert common.parse_json(b"[" * 99 + b"]" * 99, "x")


def test_only_regular_files_of_a_decent_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real").write_text("[1]")
    assert common.read_json(tmp_path / "link") == [1]
    faults = {"pipe": "not a regular file", "sparse": "larger than", "dangling": "no such file", ".": "Is a directory"}
    for name, words in faults.items():
        with pytest.raises(DashboardError, match=words):
            common.read_json(tmp_path / name)
    with pytest.raises(DashboardError, match="not a regular file"):
        common.read_json(Path("/dev/zero"))


def test_nan_is_not_written_and_its_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match=r"^\$\.a\[1\]\.b: "):
        common.write_json(tmp_path / "x", {"a": [1, {"b": float("nan")}]})
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_utf8_does_not_make_the_file_unreadable(tmp_path: Path) -> None:
    common.write_json(tmp_path / "x", {"message": "b\udcffd"})
    assert common.read_json(tmp_path / "x") == {"message": "b?d"}


def test_a_file_is_replaced_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    common.write_text(path, "größe")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("größe", 0o644)
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="directory"):
        common.write_text(tmp_path / "x", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_folder_is_there_at_every_instant_of_a_swap(tmp_path: Path) -> None:
    place, stop, faults = tmp_path / "place", threading.Event(), []
    with common.folder_beside(place) as new:
        (new / "x").write_text("0")

    def look() -> None:
        while not stop.is_set():
            if not (place / "x").exists():
                faults.append("gone")

    reader = threading.Thread(target=look)
    reader.start()
    for index in range(200):
        with common.folder_beside(place) as new:
            (new / "x").write_text(str(index))
    stop.set()
    reader.join()
    # A reader that holds the old folder open between two calls may miss a file; it asks by path here, and never does.
    assert faults == []
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_block_that_fails_leaves_the_old_folder(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(RuntimeError), common.folder_beside(place):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == [place]


def test_a_filesystem_without_the_exchange_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "_RENAME_EXCHANGE", 1 << 30)  # a flag that no kernel knows: EINVAL, as NFS says
    place = tmp_path / "place"
    for text in "ab":
        with common.folder_beside(place) as new:
            (new / "x").write_text(text)
    assert (place / "x").read_text() == "b"
    assert list(tmp_path.iterdir()) == [place]


KILLED = """
import os, sys
from pathlib import Path
from tvmdash import common
place = Path(sys.argv[1])
with common.folder_beside(place) as new:
    (new / "x").write_text("new")
    common.write_text(new.parent / "file", "whole")
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(REPO / "shared" / "python")}
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "place"], env=env, check=False)
    assert done.returncode == -signal.SIGKILL
    left = [path.name for path in tmp_path.iterdir() if path.suffix == ".new"]
    assert len(left) == 1
    with common.folder_beside(tmp_path / "place.other"):
        assert (tmp_path / left[0]).exists(), "what was to be something else is left alone"
    with common.folder_beside(tmp_path / "place"):
        assert not (tmp_path / left[0]).exists(), "the next writer of the same removes it"
    (tmp_path / "place").rmdir()
    (tmp_path / "place.other").rmdir()
    (tmp_path / ".tmpfile.abc123_x.tmp").write_text("half")
    (tmp_path / ".bashrc").write_text("mine")
    (tmp_path / ".aside.abcd1234.old").mkdir()
    (tmp_path / ".aside.abcd1234.old" / "x").write_text("kept")
    common.remove_unfinished(tmp_path)
    common.remove_unfinished(tmp_path / "nowhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".bashrc", "aside", "file"]
    assert (tmp_path / "aside" / "x").read_text() == "kept"


def test_a_path_shows_a_strangers_key_shortened_and_with_nothing_that_a_terminal_obeys() -> None:
    assert common.format_key("k" * 60) == "k" * 60
    assert len(common.format_key("k" * 61)) == 60
    assert common.format_key("a\x1b[31m") == r"'a\x1b[31m'"
