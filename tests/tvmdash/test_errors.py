"""An error for people has a place, a problem and a remedy; its text is made of them and never taken apart."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tvmdash import common
from tvmdash.dashboard_info.stages import Blocked
from tvmdash.errors import DashboardError


class OfAnAuthor(DashboardError):
    """As somebody's private code may write one."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class WithoutOurs(DashboardError):
    def __init__(self, code: int) -> None:
        self.code = code


def test_a_text_alone_is_an_error() -> None:
    error = DashboardError("a.json: bad. Mend it.")
    assert str(error) == "a.json: bad. Mend it."
    assert (error.place, error.problem, error.remedy) == ("", "a.json: bad. Mend it.", "")
    assert error.args == ("a.json: bad. Mend it.",)


def test_the_text_is_place_problem_and_remedy() -> None:
    error = DashboardError("bad.", place=Path("/a.json"), remedy="Mend it.")
    assert str(error) == "/a.json: bad. Mend it."
    assert str(DashboardError("bad.", remedy="Mend it.")) == "bad. Mend it."


def test_an_error_is_told_of_another_place_without_a_look_at_its_text() -> None:
    error = DashboardError("/tmp/x/a.json: not JSON.", place="/tmp/x/a.json", remedy="Write JSON.")
    told = error.at("a.json", remedy="Or delete it.")
    assert str(told) == "a.json: /tmp/x/a.json: not JSON. Write JSON. Or delete it."
    assert str(error.at("b")) == "b: /tmp/x/a.json: not JSON. Write JSON."


def test_its_class_and_what_an_author_adds_stay() -> None:
    assert isinstance(Blocked("no GPU").at("run"), Blocked)
    told = OfAnAuthor(7, "bad.").at("a.json")
    assert (type(told), told.code, str(told)) == (OfAnAuthor, 7, "a.json: bad.")
    assert str(WithoutOurs(7)) == "7"


def test_it_goes_to_another_process_whole() -> None:
    error = pickle.loads(pickle.dumps(DashboardError("bad.", place="a", remedy="Mend it.")))
    assert (error.place, error.problem, error.remedy) == ("a", "bad.", "Mend it.")


@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"[NaN]"])
def test_a_file_that_cannot_be_read_is_the_place(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DashboardError) as caught:
        common.read_json(path)
    assert caught.value.place == str(path)
    assert str(path) not in caught.value.problem
