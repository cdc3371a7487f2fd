"""Seven nights on a page of nightly wheels that are copies of real TVM under MLC's name, one of them slower."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes
from tests.slack import server
from tests.slack.server import State
from tests.slow.nightly_page import Edit, call, make_lab, pack, read_page
from tvmdash import common

pytestmark = pytest.mark.slow
_SLOWLY = """
_init = Target.__init__

def _slow(self, target, host=None):
    is_llvm = isinstance(target, dict) and target.get("kind") == "llvm"
    _init(self, {**target, "opt-level": 0} if is_llvm else target, host)

Target.__init__ = _slow
"""
SLOW: Mapping[str, Edit] = {"tvm/target/target.py": lambda text: text + _SLOWLY}
"""What makes generated code two to three times slower: LLVM optimises nothing."""
BROKEN: Mapping[str, Edit] = {"tvm/__init__.py": lambda _: "raise ImportError('undefined symbol: TVMFFIGone')\n"}


@pytest.fixture
def slack() -> Iterator[State]:
    """A Slack on this machine."""
    with server.slack_server() as state:
        yield state
        assert not state.violations


def test_seven_nights_on_copies_of_real_tvm_and_a_bisection(
    tmp_path: Path, tvm_artifact: Artifact, slack: State
) -> None:
    page, seen = tmp_path / "page", []
    (tmp_path / "token").write_text(server.TOKEN)
    (tmp_path / "token").chmod(0o600)
    channel = {"channel": server.CHANNEL, "token_file": str(tmp_path / "token"), "env": {"SLACK_API_URL": slack.url}}
    home = make_lab(tmp_path / "lab", page)
    config = {"active": True, "size": "smoke", "networks": ["mlp"], "opt_levels": [3]}
    homes.write(home.home.config("experiment", "relax_opt") / "config.json", config)
    for name in ("stat_alerts", "subsys_reporter", "exp_reports"):
        homes.write(home.home.config("subsystem", name) / "config.json", {"active": True, **channel})

    def night(code: int = 0) -> None:
        call(home, "run", code=code)
        seen.append([entry["version"].removeprefix("0.26.") for entry in home.last()["artifacts"]])

    pack(tvm_artifact, page, 201, commit="aaaa11111")
    night()
    for number, commit in ((202, "bbbb22222"), (203, "bbbb22222")):
        pack(tvm_artifact, page, number, commit=commit)
        night()
    next(page.glob("*dev203*")).unlink()
    night()
    pack(tvm_artifact, page, 204, commit="cccc33333", edits=BROKEN)
    night(code=1)
    for number, commit, ffi in ((205, "dddd44445", "==0.1.14.post0"), (206, "eeee55556", ">=0.1.14.post0")):
        pack(tvm_artifact, page, number, commit=commit, edits=SLOW, ffi=ffi)
        night()
    assert seen == [["dev201"], ["dev202"], ["dev203"], ["dev202"], [], ["dev205"], ["dev206"]]
    assert home.last()["references"][0]["version"] in {"0.26.dev201", "0.26.dev202"}, "dev205 has the open regression"
    assert home.last()["artifacts"][0]["facts"]["llvm_version"].isdigit()
    assert "slower" in call(home, "incidents")
    nights = [read_page(home, f"nights/{stamp}.html") for stamp in home.stamps()]
    assert "Another build of commit bbbb22222: TVM 0.26.dev202..0.26.dev203" in nights[2]
    assert "0.26.dev203, which was obtained before, is no longer offered." in nights[3]
    assert "mlc-ai-nightly-cpu 0.26.dev204: no apache-tvm-ffi works with it." in nights[4]
    assert re.search(r"TVM got slower: [^;]*mlp[^;]* since bbbb22222\.\.dddd44445", nights[5])
    # Beside load the second of the two series is told a night later.
    assert re.search(r"Nothing new; 1 regression is open|TVM got slower: .* since bbbb22222\.\.dddd44445", nights[6])
    assert "run time ratio: down" not in nights[6], "it is beside another reference"
    known = common.read_json(home.home.output("stat_alerts") / "page.json")["incidents"]
    (regression,) = [item["id"] for item in known if item["moved"][0]["metric"] == "run_time"]
    page_of = read_page(home, f"incidents/{regression}.html")
    assert "tvm-ffi: 0.1.14.post1 → 0.1.14.post0" in page_of
    said = [str(message) for message in slack.messages]
    assert any("TVM got slower: " in text and "since bbbb22222..dddd44445" in text for text in said)
    ends = ("--good", "wheel:0.26.dev202", "--bad", "wheel:0.26.dev206", "--budget", "15m")
    told = call(home, "bisect", "relax_opt", "mlp run time (variant default)", *ends)
    print(told)
    assert "0.26.dev205" in told
