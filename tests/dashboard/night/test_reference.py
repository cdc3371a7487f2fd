"""What a night measures its TVM against: which TVM that is, who is told of it, and what happens without it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import (
    LAST_USED,
    Artifact,
    ArtifactError,
    ArtifactSpec,
    library_sizes,
    write_manifest,
)
from dashboard.artifacts.artifact_store import artifacts_in, take_in
from dashboard.night.tvms import count_measured
from dashboard.plan import reference
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import Alone, CodeFolders, Job
from dashboard.plan.plan import make_plan
from dashboard.plan.reference import TvmsTonight
from dashboard.report import night_page, results
from tests.dashboard import homes
from tests.dashboard import remeasure_homes as labs
from tests.dashboard.homes import HomeForTests
from tests.dashboard.package_index import HEALTHY, make_index
from tests.dashboard.result_homes import record
from tvmdash.errors import DashboardError

RUN = homes.good("run", 'cp "${TVMDASH_REFERENCE:-/dev/null}" "$TVMDASH_HOME/../$TVMDASH_JOB.reference"')
ANALYZE = homes.good("analyze", 'test -z "${TVMDASH_REFERENCE:-}"')
REMOTE = "/somewhere/tvm"
BUILT = {"remote": REMOTE, "options": "{}", "toolchain": "gcc 12", "committed_utc": "20260801T120000Z"}


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    """A home with 0.27.0 and 0.26.0 on its shelf, whose experiment x keeps what its run is told of the reference."""
    made = homes.make_home(tmp_path, Path("../shelf"), telemetry_rate=0)
    for version in ("0.27.0", "0.26.0"):
        labs.put_artifact(tmp_path / "shelf", version)
    declare(made.experiment("x", run=RUN, analyze=ANALYZE))
    return made


def declare(folder: Path) -> None:
    """Let the experiment say that it reads of the reference by itself."""
    homes.write(folder / "fields.json", {"beside_reference": "reads"})


def shelf_of(home: HomeForTests) -> Path:
    return home.root / "shelf"


def data_of(home: HomeForTests, name: str = "x", at: int = -1) -> dict[str, Any]:
    """What the data of one of the nights says of the night."""
    data: dict[str, Any] = homes.read(home.home.data_file(name, home.stamps()[at]))["night"]
    return data


def reference_of(home: HomeForTests, name: str = "x", at: int = -1) -> str | None:
    """The version that the experiment was measured against."""
    against = data_of(home, name, at).get("reference")
    return against["version"] if against else None


def told_to_run(home: HomeForTests, name: str = "x") -> Any:
    """What the run stage of the experiment was told of its reference; None where nothing."""
    path = home.root / f"{name}.reference"
    return homes.read(path) if path.stat().st_size else None


# Which TVM it is


def test_the_first_night_of_a_home_on_wheels_measures_against_the_release_before(home: HomeForTests) -> None:
    labs.put_artifact(shelf_of(home), "0.25.0")
    night = home.night()
    (path,) = shelf_of(home).glob("wheel-0.26.0-*")
    told = told_to_run(home)
    assert (told["schema_version"], told["key"], told["version"], told["commit"]) == (1, path.name, "0.26.0", None)
    assert told["pythonpath"] == told["library_path"] == [str(path / "site")]
    against = data_of(home)["reference"]
    assert (against["key"], set(against)) == (path.name, set(data_of(home)["artifact"]))
    (record,) = night["references"]
    assert (record["artifact"], record["key"], record["choice"]) == (
        data_of(home)["artifact"]["key"], path.name, "auto",
    )  # fmt: skip
    assert [artifact["version"] for artifact in night["artifacts"]] == ["0.27.0"]
    assert "Measured TVM: 0.27.0 against TVM 0.26.0." in home.run(verb="status").output
    page = night_page.format_page(results.read(home.home, None, CodeFolders(home.code / "experiments")))
    assert "0.27.0, measured against TVM 0.26.0" in page


def test_a_release_stays_the_reference_until_a_newer_one_is_measured(home: HomeForTests) -> None:
    home.night()
    labs.put_artifact(shelf_of(home), "0.26.1")
    home.night()
    assert [reference_of(home, at=at) for at in (0, 1)] == ["0.26.0", "0.26.0"]
    labs.put_artifact(shelf_of(home), "0.28.0")
    home.night()
    assert reference_of(home) == "0.27.0"


def test_a_home_with_one_release_measures_it_alone_and_says_nothing(home: HomeForTests) -> None:
    shutil.rmtree(next(shelf_of(home).glob("wheel-0.26.0-*")))
    night = home.night()
    assert (told_to_run(home), reference_of(home), night["references"], night["notes"]) == (None, None, [], [])


def test_none_measures_alone(home: HomeForTests) -> None:
    home.configure(reference="none")
    night = home.night()
    assert (told_to_run(home), reference_of(home), night["references"]) == (None, None, [])
    assert "Reference: none (disabled in the config)." in home.run(verb="plan").output


def test_a_reference_that_the_config_chose_is_not_kept_once_it_chooses_none(home: HomeForTests) -> None:
    labs.put_artifact(shelf_of(home), "0.25.0")
    home.configure(reference="pypi:0.25.0")
    home.night()
    home.configure(reference="auto")
    home.night()
    assert [reference_of(home, at=at) for at in (0, 1)] == ["0.25.0", "0.26.0"]


def test_a_tvm_that_is_its_own_reference_is_measured_against_itself_and_that_is_said(home: HomeForTests) -> None:
    home.configure(reference="pypi:latest")
    home.night()
    assert data_of(home)["reference"] == data_of(home)["artifact"]
    assert "0.27.0 against itself (an A/A test)." in home.run(verb="status").output
    assert "Reference of TVM latest from pypi: itself (an A/A test)." in home.run(verb="plan").output


def test_each_tvm_of_a_night_has_a_reference_of_its_own(home: HomeForTests) -> None:
    labs.put_artifact(shelf_of(home), "0.25.0")
    home.configure(tvms={"release": "pypi:0.26.0"})
    night = home.night()
    assert (reference_of(home), reference_of(home, "x@release")) == ("0.26.0", "0.25.0")
    assert told_to_run(home, "x@release")["version"] == "0.25.0"
    assert len(night["references"]) == 2


def test_a_reference_that_cannot_be_had_is_tried_once_for_all_tvms_of_the_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build from source that fails takes hours, each time."""
    tried = []

    def fails(spec: ArtifactSpec, *_: object, **__: object) -> None:
        tried.append(spec)
        raise ArtifactError("it does not compile")

    monkeypatch.setattr(reference, "provide", fails)
    specs = [ArtifactSpec("pypi", version) for version in ("0.27.0", "0.26.0")]
    have = {spec: labs.put_artifact(tmp_path / "shelf", spec.branch) for spec in specs}
    made = homes.make_home(tmp_path, Path("../shelf"), reference="https://host/tvm@main")
    tonight = TvmsTonight(read_home_config(made.home), have, {}, [], tmp_path / "logs", rebuild=True)
    found = tonight.provide_references(specs, ExitStack())
    assert [spec.branch for spec in tried] == ["main"]
    assert len(found.notes) == 2, "each TVM that is measured without a reference is named"
    assert all("it does not compile" in note for note in found.notes)


def test_one_reference_serves_all_tvms_of_a_night_and_is_kept_for_each(home: HomeForTests) -> None:
    labs.put_artifact(shelf_of(home), "0.27.0.post1")
    labs.put_artifact(shelf_of(home), "0.25.0")
    home.configure(tvms={"first": "pypi:0.27.0"}, max_artifacts_gb=0)
    night = home.night()
    assert (reference_of(home), reference_of(home, "x@first")) == ("0.26.0", "0.26.0")
    assert {record["key"] for record in night["references"]} == {told_to_run(home)["key"]}
    kept = sorted(path.name.split("-")[1] for path in shelf_of(home).glob("wheel-*"))
    assert kept == ["0.26.0", "0.27.0", "0.27.0.post1"]


def test_a_reference_may_be_named_as_one_of_the_homes_tvms(home: HomeForTests) -> None:
    home.configure(tvms={"release": "pypi:0.26.0"}, reference="release")
    home.night()
    assert (reference_of(home), reference_of(home, "x@release")) == ("0.26.0", "0.26.0")


def test_who_asks_for_a_tvm_of_its_own_or_none_is_measured_alone(home: HomeForTests) -> None:
    home.experiment("own", config={"tvm_branch": "0.27.0"}, run=RUN)
    home.experiment("off", config={"paired": False}, run=RUN)
    canary = home.experiment("canary", run=RUN)
    homes.write(canary / "fields.json", {"needs_tvm": False})
    told = home.run(verb="plan").output
    assert "Measured alone: canary (needs no TVM), off (paired is false) and own (has a TVM of its own)." in told
    home.night()
    names = ("x", "own", "off", "canary")
    assert [reference_of(home, name) for name in names] == ["0.26.0", None, None, None]
    assert [told_to_run(home, name) is None for name in names] == [False, True, True, True]


# Builds from source


def put_build(home: HomeForTests, commit: str, **facts: str) -> Artifact:
    """A build of a commit, as the git provider would have left it."""
    key = f"git-{commit[:12]}"
    site = shelf_of(home) / key / "tree"
    site.mkdir(parents=True)
    (site / "libtvm.so").write_bytes(b"x")
    here = labs.put_artifact(home.root / "scratch" / commit, "0.1.0").facts
    made = Artifact(
        key, "git", f"0.27.0+g{commit[:9]}", commit, site.parent, (site,), (site,), {**here, **BUILT, **facts}, {},
        library_sizes(site.parent, (site,)),
    )  # fmt: skip
    write_manifest(made)
    (site.parent / LAST_USED).touch()
    return made


def test_a_source_build_is_measured_against_the_last_one_that_differs(home: HomeForTests) -> None:
    builds = [put_build(home, digit * 40) for digit in "123"]
    home.configure(tvm_remote=REMOTE, tvm_branch="1" * 40)
    assert "none; no earlier night built it" in home.run(verb="plan").output
    assert home.night()["references"] == []
    home.configure(tvm_branch="2" * 40)
    home.night()
    assert data_of(home)["reference"]["key"] == builds[0].key
    shutil.rmtree(builds[1].path)
    home.configure(tvm_branch="3" * 40)
    home.night()
    assert data_of(home)["reference"]["key"] == builds[0].key, "the one before is not there any more"


# A reference that cannot be had


def test_a_named_reference_that_cannot_be_had_costs_the_night_nothing_else(home: HomeForTests) -> None:
    home.configure(reference="pypi:0.1.0")
    night = home.night()
    assert (told_to_run(home), reference_of(home), night["references"]) == (None, None, [])
    (note,) = night["notes"]
    assert note.startswith(
        "Could not obtain the reference TVM 0.1.0 from pypi, so TVM 0.27.0 is measured without a reference: "
    )
    assert f"Note: {note}" in home.run(verb="status").output


def test_a_reference_is_not_removed_to_make_room(home: HomeForTests) -> None:
    labs.put_artifact(shelf_of(home), "0.25.0")
    home.configure(max_artifacts_gb=0)
    home.night()
    assert sorted(path.name.split("-")[1] for path in shelf_of(home).glob("wheel-*")) == ["0.26.0", "0.27.0"]


def test_a_release_that_is_the_reference_is_in_the_backup_and_serves_a_restored_home(home: HomeForTests) -> None:
    """The package index may have dropped it by then."""
    home.night()
    for gone in (home.path, next(shelf_of(home).glob("wheel-0.26.0-*"))):
        shutil.rmtree(gone)
    restored = _restore(home)
    assert restored.code == 0, restored.output
    night = home.night()
    (path,) = shelf_of(home).glob("wheel-0.26.0-*")
    assert (reference_of(home), night["notes"]) == (
        "0.26.0", [f"The TVM {path.name} was recovered from the restored home."],
    )  # fmt: skip
    assert not any(home.home.references.iterdir()), "it is kept once"
    home.night()
    shutil.rmtree(home.path)
    _restore(home)
    assert [kept.name for kept in home.home.references.iterdir()] == [path.name], "of later nights as well"


def _restore(home: HomeForTests) -> homes.Finished:
    argv = [sys.executable, "-m", "dashboard", "restore", str(home.root / "backup"), str(home.path)]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, check=False, timeout=300)
    return homes.Finished(done.returncode, done.stdout + done.stderr, 0.0)


def test_an_artifact_that_is_not_for_this_machine_or_damaged_stays_in_the_restored_home(tmp_path: Path) -> None:
    source, folder = tmp_path / "references", tmp_path / "shelf"
    good, damaged, foreign = (labs.put_artifact(source, version) for version in ("0.26.0", "0.25.0", "0.24.0"))
    (damaged.path / "site" / "libtvm.so").write_bytes(b"short")
    write_manifest(replace(foreign, facts={**foreign.facts, "machine": "riscv64"}))
    assert take_in(source, folder) == [good.key]
    assert sorted(path.name for path in source.iterdir()) == sorted([damaged.key, foreign.key])
    assert [artifact.key for artifact in artifacts_in(folder)] == [good.key]


# What is told of it, and to whom


def test_data_of_a_killed_night_name_the_reference_though_it_was_removed_since(home: HomeForTests) -> None:
    hangs = f"{homes.WORK['run']}; {homes.says('run')}; touch {home.root}/hangs; sleep 1000"
    home.experiment("x", run=homes.good("run", hangs))
    process = home.start()
    with homes.killed_at_end(process):
        homes.wait_for((home.root / "hangs").exists, "the run")
        process.send_signal(signal.SIGKILL)
        process.wait()
    shutil.rmtree(next(shelf_of(home).glob("wheel-0.26.0-*")))
    home.experiment("x")
    home.night()
    assert [reference_of(home, at=at) for at in (0, 1)] == ["0.26.0", None]
    (record,) = home.home.read_night(home.stamps()[0]).references
    assert record.version == "0.26.0"


def test_what_is_measured_again_is_not_told_of_the_reference(tmp_path: Path) -> None:
    lab = labs.make_lab(tmp_path)
    for version in ("0.27.0", "0.26.0"):
        labs.put_artifact(tmp_path / "shelf", version)
    tells = labs.FINDS_HOME + ('open(f"{home}/told", "a").write(os.environ.get("TVMDASH_REFERENCE", "none") + "\\n")\n')
    declare(lab.home.experiment(labs.NAME, run=labs.RUN.replace(labs.FINDS_HOME, tells), analyze=labs.ANALYZE))
    lab.home.night()
    (stamp,) = lab.home.stamps()
    done, _ = lab.remeasure([{"experiment": labs.NAME, "stamp": stamp, "points": []}])
    assert done.code == 0, done.output
    first, again = (tmp_path / "told").read_text().split()
    assert (first.endswith("/reference.json"), again) == (True, "none")


def test_plan_says_what_the_next_night_would_measure_against(home: HomeForTests) -> None:
    before = home.run(verb="plan").output
    assert (
        "Reference of TVM latest from pypi: the previous release, which the night looks up in the package index"
        in before
    )
    home.night()
    known = (
        "Reference of TVM latest from pypi: TVM 0.26.0, as on previous nights; if tonight's TVM is no longer 0.27.0, "
    )
    assert known in home.run(verb="plan").output
    assert known in home.run(verb="check").output
    home.configure(tvm_branch="0.27.0")
    assert "Reference of TVM 0.27.0 from pypi: TVM 0.26.0, as on previous nights.\n" in home.run(verb="plan").output


def test_check_says_that_a_named_reference_cannot_be_had(home: HomeForTests) -> None:
    index = make_index(home.root / "index", {"0.27.0": HEALTHY, "0.25.0": HEALTHY})
    home.configure(reference="pypi:0.25.0")
    assert home.run_online(index, verb="check").code == 0
    home.configure(reference="pypi:0.1.0")
    done = home.run_online(index, verb="check")
    assert done.code == 2
    assert "TVM: 0.1.0 from pypi, as reference: a night that began now would have none (asked at " in done.output
    assert "apache-tvm 0.1.0 is not available for Python" in done.output
    home.configure(reference=f"{home.root}/no-repository@main")
    told = home.run_online(index, verb="check").output
    assert "no-repository: could not fetch main: git ls-remote" in told
    assert "log:" not in told, "it is gone by then"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "0.26.0",
            "'0.26.0' is not a TVM. Use auto, none, pypi:0.26.0, pypi:latest, wheel:PACKAGE@VERSION, git:REVISION",
        ),
        ("relaese", "or a name in tvms (release)."),
        ("git:main", "tvm_remote is pypi"),
        ("pypi:--help", "--help"),
        ("", "reference"),
    ],
)
def test_a_reference_that_cannot_be_meant_stops_the_night_before_anything_is_touched(
    home: HomeForTests, text: str, fault: str
) -> None:
    home.configure(reference=text, tvms={"release": "pypi:0.26.0"})
    with pytest.raises(DashboardError) as raised:
        make_plan(home.home, CodeFolders(home.code / "experiments", home.code / "subsystem"))
    assert "$.reference: " in str(raised.value)
    assert fault in str(raised.value)


def job_of(home: HomeForTests, name: str) -> Job:
    plan = make_plan(home.home, CodeFolders(home.code / "experiments", home.code / "subsystem"))
    return next(job for job in plan.experiments if job.name == name)


def test_an_experiment_with_a_remote_of_its_own_is_measured_alone(home: HomeForTests) -> None:
    home.experiment("y", config={"tvm_remote": REMOTE, "tvm_branch": "main"})
    assert (job_of(home, "x").alone, job_of(home, "y").alone) == (None, Alone.OWN_TVM)


def test_what_is_measured_again_in_pairs_is_told_of_the_other_nights_artifact(tmp_path: Path) -> None:
    lab = labs.make_lab(tmp_path)
    older = labs.put_artifact(tmp_path / "shelf", "0.27.0")
    tells = labs.FINDS_HOME + (
        'file = os.environ.get("TVMDASH_REFERENCE")\n'
        'key = json.loads(read(file))["key"] if file else "none"\n'
        'open(f"{home}/told", "a").write(key + "\\n")\n'
    )
    lab.home.experiment(labs.NAME, run=labs.RUN.replace(labs.FINDS_HOME, tells), analyze=labs.ANALYZE)
    lab.home.night()
    labs.put_artifact(tmp_path / "shelf", "0.28.0")
    lab.home.night()
    first, second = lab.home.stamps()
    request = {"experiment": labs.NAME, "points": []}
    done, rounds = lab.remeasure([{**request, "stamp": second, "beside": first}, {**request, "stamp": second}])
    assert done.code == 0, done.output
    assert [one["ratios"] for one in rounds] == [{}, {}], "this experiment measures no pairs"
    assert (tmp_path / "told").read_text().split()[-2:] == [older.key, "none"]
    done, _ = lab.remeasure([{**request, "stamp": second, "beside": "yesterday"}])
    assert "$[0].beside: 'yesterday' is not a stamp" in done.output


# What was measured beside it before


def record_content(home: HomeForTests, contents: dict[str, int]) -> None:
    """Leave data of the last night, as if the template had measured points that ran these contents."""
    path = home.home.data_file("x", home.stamps()[-1])
    records = [{"additional_info": {"content": {"hash": name, "pairs": pairs}}} for name, pairs in contents.items()]
    homes.write(path, {**homes.read(path), "records": [*records, {"additional_info": {}}]})


def test_the_run_is_told_what_the_night_before_measured_beside_the_same_reference(home: HomeForTests) -> None:
    home.night()
    assert told_to_run(home)["measured"] == {}
    record_content(home, {"one": 5, "two": 8})
    home.night()
    assert told_to_run(home)["measured"] == {"one": 5, "two": 8}
    home.night()
    assert told_to_run(home)["measured"] == {}, "the last night measured no such points"


def test_what_was_measured_beside_another_reference_counts_only_where_it_is_the_reference_now(
    home: HomeForTests,
) -> None:
    labs.put_artifact(shelf_of(home), "0.25.0")
    home.night()
    record_content(home, {"one": 5})
    home.configure(reference="pypi:0.25.0")
    home.night()
    assert told_to_run(home)["measured"] == {}
    record_content(home, {"one": 6})
    home.configure(reference="pypi:0.27.0")
    home.night()
    assert told_to_run(home)["measured"] == {"one": 6}, "the night before measured this reference as its own TVM"


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        '{"night": {"reference": {"key": "KEY"}}, "records": 3}',
        '{"night": {"reference": {"key": "KEY"}}, "records": [3, {"additional_info": {"content": {"hash": 5}}}]}',
    ],
)
def test_damaged_data_of_the_night_before_cost_only_time(home: HomeForTests, data: str) -> None:
    reference = labs.put_artifact(shelf_of(home), "0.25.0")
    path = home.home.data_file("x", "20260101T000000Z")
    path.parent.mkdir(parents=True)
    path.write_text(data.replace("KEY", reference.key))
    assert count_measured(home.home, "x", reference) == {}


@pytest.mark.parametrize(("alone", "beside", "told"), [(18, 19, False), (18, 20, True), (17, 1, True)])
def test_nights_whose_times_are_still_judged_are_measured_in_full(
    home: HomeForTests, alone: int, beside: int, told: bool
) -> None:
    reference = labs.put_artifact(shelf_of(home), "0.25.0")
    for day in range(alone + beside):
        path = home.home.data_file("x", f"202601{day // 24 + 1:02}T{day % 24:02}0000Z")
        named = {"reference": {"key": reference.key, "version": "0.25.0"}} if day >= alone else {}
        homes.write(path, {"numbers": 1, "night": {"artifact": {"key": "a"}, **named}})
    point = record("network.mlp", 1.0, content={"hash": "one", "pairs": 5})
    homes.write(path, {"schema_version": 1, "tvm_hash": "a", "night": homes.read(path)["night"], "records": [point]})
    assert count_measured(home.home, "x", reference) == ({"one": 5} if told else {})
