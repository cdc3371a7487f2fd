"""Seven nights on a page of nightly wheels that are copies of real TVM under MLC's name, one of them slower."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tests.slack import server
from tests.slack.server import State
from tvmdash import common

pytestmark = pytest.mark.slow
TIMEOUT_S = 1800.0
SLOW = """
_init = Target.__init__

def _slow(self, target, host=None):
    is_llvm = isinstance(target, dict) and target.get("kind") == "llvm"
    _init(self, {**target, "opt-level": 0} if is_llvm else target, host)

Target.__init__ = _slow
"""
"""What makes generated code two to three times slower: LLVM optimises nothing."""


def pack(
    tvm: Artifact,
    page: Path,
    number: int,
    *,
    commit: str,
    slow: bool = False,
    broken: bool = False,
    ffi: str = ">=0.1.14.post0",
) -> None:
    """A nightly wheel with the files of that TVM; stored, because to compress 300 MB takes a minute."""
    name, site = f"mlc_ai_nightly_cpu-0.26.dev{number}", tvm.path / "site"
    info = f"{name}.dist-info"
    page.mkdir(exist_ok=True)
    with zipfile.ZipFile(page / f"{name}-py3-none-linux_x86_64.whl.part", "w") as wheel:
        for file in sorted(path for path in (site / "tvm").rglob("*") if path.is_file() and path.suffix != ".pyc"):
            place = file.relative_to(site).as_posix()
            if place == "tvm/_version.py":
                text = file.read_text().replace("g7b5acb32b", f"g{commit}")
            elif place == "tvm/target/target.py" and slow:
                text = file.read_text() + SLOW
            elif place == "tvm/__init__.py" and broken:
                text = "raise ImportError('undefined symbol: TVMFFIGone')\n"
            else:
                wheel.write(file, place)
                continue
            wheel.writestr(place, text)
        needs = "".join(f"Requires-Dist: {need}\n" for need in (f"apache-tvm-ffi{ffi}", "numpy", "ml_dtypes"))
        head = f"Metadata-Version: 2.1\nName: mlc-ai-nightly-cpu\nVersion: 0.26.dev{number}\n{needs}"
        wheel.writestr(f"{info}/METADATA", head)
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
        wheel.writestr(f"{info}/WHEEL", tag)
        wheel.writestr(f"{info}/RECORD", "")
    (page / f"{name}-py3-none-linux_x86_64.whl.part").rename(page / f"{name}-py3-none-linux_x86_64.whl")


def call(home: HomeForTests, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "dashboard", words[0], str(home.path), *words[1:]],
        env={**homes.environment(), **{name: value for name, value in os.environ.items() if name.startswith("PIP_")}},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def slack() -> Iterator[State]:
    """A Slack on this machine."""
    with server.slack_server() as state:
        yield state
        assert not state.violations


def read_page(home: HomeForTests, name: str) -> str:
    """What a page of the home's site says, with single blanks."""
    text = (home.home.output("website") / name).read_text()
    return " ".join(html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", text, flags=re.DOTALL)).split())


def test_seven_nights_on_copies_of_real_tvm_and_a_bisection(
    tmp_path: Path, tvm_artifact: Artifact, slack: State
) -> None:
    page, seen = tmp_path / "page", []
    (tmp_path / "token").write_text(server.TOKEN)
    (tmp_path / "token").chmod(0o600)
    channel = {"channel": server.CHANNEL, "token_file": str(tmp_path / "token"), "env": {"SLACK_API_URL": slack.url}}
    remote = {"package": "mlc-ai-nightly-cpu", "find_links": str(page)}
    home = homes.make_home(tmp_path / "lab", Path("../shelf"), tvm_remote=remote)
    config = {"active": True, "size": "smoke", "networks": ["mlp"], "opt_levels": [3]}
    homes.write(home.home.config("experiment", "relax_opt") / "config.json", config)
    homes.write(home.home.config("subsystem", "website") / "config.json", {"active": True})
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
    pack(tvm_artifact, page, 204, commit="cccc33333", broken=True)
    night(code=1)
    for number, commit, ffi in ((205, "dddd44445", "==0.1.14.post0"), (206, "eeee55556", ">=0.1.14.post0")):
        pack(tvm_artifact, page, number, commit=commit, slow=True, ffi=ffi)
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
    assert "0.26.dev205" in told
