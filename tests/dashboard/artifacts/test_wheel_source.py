"""Sources of wheels: how they are written, what they offer, and what of them is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import provide
from dashboard.artifacts.spec import GIT, Fallback, parse, provider_of
from dashboard.artifacts.wheel import package_index
from dashboard.artifacts.wheel.source import MLC_PAGE, WheelSource, parse_source, read_remote
from dashboard.hosts import bundle
from tests.dashboard.package_index import HEALTHY, add_nightly, make_index, write_wheel
from tvmdash.dashboard_info import name_wheel
from tvmdash.errors import DashboardError
from tvmdash.trials.trial import TrialTvm

CPU = "mlc-ai-nightly-cpu"
NIGHTLY = ArtifactSpec(f"wheel:{CPU}", "latest")
SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    ("written", "text", "source"),
    [
        ("pypi", "pypi", WheelSource()),
        ("pypi+pre", "pypi+pre", WheelSource(pre=True)),
        ("wheel:apache_tvm", "pypi", WheelSource()),
        (f"wheel:{CPU}", f"wheel:{CPU}", WheelSource(CPU, MLC_PAGE, pre=True)),
        ("wheel:MLC_AI_nightly.cpu+pre", f"wheel:{CPU}", WheelSource(CPU, MLC_PAGE, pre=True)),
        (f"wheel:{CPU},/srv/page", f"wheel:{CPU},/srv/page", WheelSource(CPU, "/srv/page", pre=True)),
        ("wheel:o+pre,index=https://h", "wheel:o+pre,index=https://h", WheelSource("o", "", "https://h", pre=True)),
        ({"package": CPU}, f"wheel:{CPU}", WheelSource(CPU, MLC_PAGE, pre=True)),
        ({"package": "ours", "find_links": "https://h/p"}, "wheel:ours,https://h/p", WheelSource("ours", "https://h/p")),
        ({"pre": True}, "pypi+pre", WheelSource(pre=True)),
    ],
)  # fmt: skip
def test_a_source_is_written_in_one_way(written: Any, text: str, source: WheelSource) -> None:
    assert read_remote(written) == text
    assert parse_source(text) == source


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"package": CPU, "find_link": "x"}, "tvm_remote.find_link: unknown field"),
        ({"package": CPU, "pre": "yes"}, "tvm_remote.pre: must be true or false"),
        ({"find_links": "/a", "index": "https://b"}, "has both find_links and index"),
        ({"find_links": "page"}, "'page' is not an address"),
        ({"find_links": "/a page"}, "write a space as %20"),
        ({"find_links": f"https://{SECRET}@host/p"}, "a user without a password"),
        ("wheel:--evil", "'--evil' is not a package name"),
        ("wheel:ours+dev", "'+dev' is unknown"),
        (7, "neither a text nor an object"),
    ],
)
def test_what_is_no_source_is_told_with_its_remedy(written: Any, said: str) -> None:
    with pytest.raises(ArtifactError) as told:
        read_remote(written)
    assert said in str(told.value)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    ("name", "remote", "branch"),
    [
        ("wheel:0.26.dev203", NIGHTLY.remote, "0.26.dev203"),
        ("wheel:latest", NIGHTLY.remote, "latest"),
        (f"wheel:{CPU}@0.26.dev203", NIGHTLY.remote, "0.26.dev203"),
        (f"wheel:{CPU}", NIGHTLY.remote, "latest"),
        ("wheel:ours,https://u:p@h/x@1.0", "wheel:ours,https://u:p@h/x", "1.0"),
        ("pypi+pre:0.28.0rc1", "pypi+pre", "0.28.0rc1"),
        ("pypi:latest", "pypi", "latest"),
    ],
)
def test_a_command_line_names_a_wheel_of_any_source(name: str, remote: str, branch: str) -> None:
    assert parse(name, NIGHTLY) == ArtifactSpec(remote, branch)


def test_the_homes_own_source_must_be_one_of_wheels() -> None:
    with pytest.raises(DashboardError, match=r"wheel:0\.26\.dev1: the home's tvm_remote is a git remote"):
        parse("wheel:0.26.dev1", ArtifactSpec("/a/tvm", "main"))
    assert provider_of(ArtifactSpec("pypi@host:tvm.git", "main")) == GIT


def test_a_wheel_is_named_again_by_what_it_was(tmp_path: Path) -> None:
    version = "0.26.dev203"
    asked = {
        "wheel:latest": f"wheel:{version}",
        "wheel:0.26.dev203": f"wheel:{version}",
        f"wheel:{CPU}": f"wheel:{CPU}@{version}",
        f"wheel:{CPU}@latest": f"wheel:{CPU}@{version}", "pypi+pre:latest": f"pypi+pre:{version}",
    }  # fmt: skip
    assert {name: TrialTvm(name, "k", version, "abc").exact_name for name in asked} == asked
    assert name_wheel(version) == f"pypi:{version}"
    assert name_wheel(version, "wheel:ours,https://[hidden]@h/p") == f"wheel:{version}"
    for name in (f"wheel:{CPU}@{version}", f"pypi+pre:{version}"):
        spec = parse(name, NIGHTLY)
        assert spec is not None
        assert bundle._write_spec(spec) == name


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with two nightlies; pip's own index has tvm-ffi 0.1.12 and a candidate of 0.1.13, which they want."""
    index = tmp_path / "index"
    for name, value in make_index(index, {}).items():
        monkeypatch.setenv(name, value)
    next(index.glob("apache_tvm_ffi-*")).unlink()
    for version in ("0.1.12", "0.1.13rc1"):
        write_wheel(index, "apache_tvm_ffi", version, {"tvm_ffi/__init__.py": f'__version__ = "{version}"\n'})
    write_wheel(index, "mlc_ai_nightly_cpu", "9.0", {"tvm/__init__.py": "raise SystemExit('somebody else')"})
    for number in (201, 202):
        add_nightly(tmp_path / "page", number, commit="abc1234")
    return tmp_path / "page"


def get(page: Path, branch: str = "latest", *, fallback: Fallback = Fallback.UNREACHABLE) -> tuple[Artifact, str]:
    spec, parent = ArtifactSpec(f"wheel:{CPU},{page}", branch), page.parent
    logs = parent / "logs"
    done = provide(spec, parent / "shelf", rebuild=True, log_folder=logs, timeout_s=600, fallback=fallback)
    with done:
        return done.artifact, done.note


def test_the_newest_nightly_of_a_page_is_taken_with_a_candidate_of_tvm_ffi(page: Path) -> None:
    newest, note = get(page)
    assert (newest.version, newest.commit, note) == ("0.26.dev202", "abc1234", "")
    assert newest.facts["tvm_ffi"] == "0.1.13rc1"
    assert newest.facts["source"] == f"wheel:{CPU},{page}"
    older, _ = get(page, "0.26.dev201")
    assert older.key != newest.key, "two builds of one commit are two artifacts"
    assert older.facts["wheel_sha256"] != newest.facts["wheel_sha256"]


def test_a_page_that_has_gone_back_is_said(page: Path) -> None:
    get(page)
    next(page.glob("*dev202*")).unlink()
    older, note = get(page)
    assert older.version == "0.26.dev201"
    assert "is now TVM 0.26.dev201: 0.26.dev202, which was obtained before, is no longer offered." in note


def test_a_page_that_is_away_costs_what_the_config_says(page: Path) -> None:
    get(page)
    page.rename(page.with_name("elsewhere"))
    taken, note = get(page)
    assert taken.version == "0.26.dev202"
    assert "measured 0.26.dev202 instead" in note
    assert f"Check that this machine can reach {page}" in note
    with pytest.raises(ArtifactError, match="No matching distribution"):
        get(page, fallback=Fallback.NEVER)


def test_a_broken_nightly_costs_what_the_config_says(page: Path) -> None:
    get(page)
    add_nightly(page, 203, code="raise ImportError('undefined symbol')")
    with pytest.raises(ArtifactError, match=f"{CPU} 0.26.dev203: no apache-tvm-ffi works with it"):
        get(page)
    taken, note = get(page, fallback=Fallback.ALWAYS)
    assert taken.version == "0.26.dev202"
    assert note.startswith(f"TVM 0.26.dev203 of wheel:{CPU},{page} cannot be used; measured 0.26.dev202 instead:")
    (page / "mlc_ai_nightly_cpu-0.26.dev204-py3-none-any.whl").write_bytes(b"half of it")
    with pytest.raises(ArtifactError, match=r"0\.26\.dev204"):
        get(page)


@pytest.mark.parametrize("user", [f"me:{SECRET}", f":{SECRET}", f"{SECRET}:", f"{SECRET}:x"])
def test_an_address_with_a_secret_shows_it_nowhere(page: Path, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    source = parse_source(f"wheel:{CPU},http://{user}@127.0.0.1:9/page?token={SECRET}")
    log = page.parent / "pip.log"
    with pytest.raises(ArtifactError) as told:
        package_index.list_versions(source, log=log, deadline=LockDeadline(60))
    assert SECRET not in f"{told.value}{log.read_text()}{source.id}{ArtifactSpec(str(source), 'latest').shown}"
    assert "connection error" in str(told.value)


def test_a_release_home_takes_no_candidate_unless_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in make_index(tmp_path / "index", {"0.9.0": HEALTHY, "0.10.0rc1": HEALTHY}).items():
        monkeypatch.setenv(name, value)
    found = {}
    for remote in ("pypi+pre", "pypi"):
        spec = ArtifactSpec(remote, "latest")
        with provide(spec, tmp_path / "shelf", rebuild=True, log_folder=tmp_path / "logs", timeout_s=600) as done:
            found[remote] = done.artifact.version, done.note
    assert found == {"pypi+pre": ("0.10.0rc1", ""), "pypi": ("0.9.0", "")}
