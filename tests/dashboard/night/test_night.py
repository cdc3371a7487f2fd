"""Nights in which nothing goes wrong."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dashboard.archive import archive
from dashboard.artifacts.artifact import Artifact
from dashboard.night import setup_cache
from dashboard.upkeep import indexes
from tests.dashboard import homes


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tvm_artifact_folder)


def order_of(home: homes.HomeForTests, stage: str) -> list[str]:
    return (home.root / f"order-{stage}").read_text().split()


def noting(home: homes.HomeForTests, stage: str) -> str:
    return homes.good(stage, f'echo "$TVMDASH_JOB" >> "{home.root}/order-{stage}"')


def test_a_night_leaves_data_graphs_summaries_statuses_and_a_page(
    home: homes.HomeForTests, tvm_artifact: Artifact
) -> None:
    home.experiment("cnn", setup=homes.good("setup"), run=homes.good("run", 'test "$(cat setup/built)" = built'))
    home.subsystem("website")
    done = home.run()
    assert done.code == 0, done.output
    (stamp,) = home.stamps()
    data = homes.read(home.home.data_file("cnn", stamp))
    assert (data["timestamp"], data["value"]) == (stamp, 1.5)
    assert data["tvm_hash"] == (tvm_artifact.commit or tvm_artifact.version)
    assert data["night"]["artifact"]["key"] == tvm_artifact.key
    assert data["night"]["config"]["active"] is True
    assert home.home.stamp_of(home.home.graph("cnn")) == stamp
    assert home.home.read_summary("cnn") == ("Sum", f"of {stamp}")
    states = {"precheck": "ok", "setup": "ok", "run": "ok", "analyze": "ok", "visualize": "ok", "summarize": "ok"}
    assert home.states("cnn") == states
    assert home.status("cnn", "run")["message"] == "run went well"
    assert home.home.output("website").joinpath("index.html").read_text() == f"page of {stamp}\n"
    assert home.last()["state"] == "complete"
    assert "cnn ok. " in done.output
    assert f"file://{home.path}" in done.output
    assert not list((home.root / "tmp").glob("2*")), "the night's folder is removed"


def test_a_second_night_adds_data_and_replaces_graphs(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    website = homes.good("subsystem", 'echo "$TVMDASH_NIGHT" >> "$2/history"')
    home.subsystem("website", run=website)
    home.night()
    home.night()
    first, second = home.stamps()
    assert home.home.data_stamps("cnn") == [first, second]
    assert home.home.graph("cnn").joinpath("graph.svg").read_text() == f"graph of {second}\n"
    assert home.home.output("website").joinpath("history").read_text().split() == [first, second]


def test_raw_measurements_are_zipped_and_the_oldest_removed(home: homes.HomeForTests) -> None:
    home.configure(keep_raw_nights=2)
    home.experiment("cnn", run=homes.good("run", 'mkdir "$2/deep" && touch -d @0 "$2/deep/old"'))
    for _ in range(3):
        home.night()
    zips = sorted((home.root / "tmp" / "raw" / "cnn").iterdir())
    assert [path.name for path in zips] == [f"raw_{stamp}.zip" for stamp in home.stamps()[1:]]
    with zipfile.ZipFile(zips[-1]) as archived:
        assert set(archived.namelist()) == {"raw.json", "status.json", "deep/old"}


def test_all_timings_come_before_the_first_analysis(home: homes.HomeForTests) -> None:
    for name in ("a", "b", "c"):
        line = f'echo {{}}-"$TVMDASH_JOB" >> "{home.root}/order-all"'
        scripts = {stage: homes.good(stage, line.format(stage)) for stage in ("setup", *homes.STAGES)}
        home.experiment(name, **scripts)
    home.subsystem("site", run=homes.good("subsystem", f'echo site >> "{home.root}/order-all"'))
    home.night()
    order = [entry.partition("-")[0] for entry in order_of(home, "all")]
    assert order[:6] == ["setup"] * 3 + ["run"] * 3
    assert order[-1] == "site"
    assert sorted(order[6:-1]) == sorted([*["analyze"] * 3, *["summarize"] * 3, *["visualize"] * 3])


def test_without_random_order_priority_comes_first_then_the_name(home: homes.HomeForTests) -> None:
    for name, priority in (("c", 0), ("a", 0), ("z", 5), ("b", -1)):
        home.experiment(name, config={"priority": priority}, run=noting(home, "run"))
    home.night()
    assert order_of(home, "run") == ["z", "a", "c", "b"]


def test_random_order_is_repeated_by_its_recorded_seed(home: homes.HomeForTests) -> None:
    home.configure(randomize=True)
    names = [f"e{index}" for index in range(8)]
    for name in names:
        home.experiment(name, run=noting(home, "run"))
    seed = home.night()["seed"]
    home.night("--seed", str(seed))
    first, second = order_of(home, "run")[:8], order_of(home, "run")[8:]
    assert first == second
    assert sorted(first) == names
    data = homes.read(home.home.data_file("e0", home.stamps()[0]))
    assert data["night"]["seed"] == seed


def test_setup_runs_again_only_after_a_change(home: homes.HomeForTests) -> None:
    folder = home.experiment("cnn", setup=noting(home, "setup"))
    for _ in range(2):
        home.night()
    assert home.states("cnn")["setup"] == "skipped"
    folder.joinpath("extra.py").write_text("x = 1\n")
    home.night()
    assert home.states("cnn")["setup"] == "ok"
    home.experiment("cnn", setup=noting(home, "setup"), config={"title": "Changed"})
    home.night()
    home.experiment("cnn", setup=noting(home, "setup"), config={"title": "Changed", "rerun_setup": True})
    home.night()
    home.night()
    assert len(order_of(home, "setup")) == 5
    assert len(list((home.root / "setup" / "cnn").iterdir())) == 1, "older setups are removed"


def test_the_recorded_fingerprint_is_that_of_the_code_before_its_stages_ran(home: homes.HomeForTests) -> None:
    home.experiment("cnn", setup=homes.good("setup"), run=homes.good("run", "date +%N > scratch-file"))
    prints = [homes.read(home.home.data_file("cnn", home.night()["stamp"]))["night"]["fingerprint"] for _ in range(2)]
    assert prints[0] == prints[1]
    assert next((home.root / "setup" / "cnn").iterdir()).name.startswith(prints[0])


def test_stage_scripts_that_are_links_out_of_the_folder_run_and_are_told_apart_by_what_they_lead_to(
    home: homes.HomeForTests,
) -> None:
    folder, shared = home.experiment("cnn"), home.code / "shared" / "stage.sh"
    homes.script(shared, homes.good("run"))
    (folder / "run.sh").unlink()
    (folder / "run.sh").symlink_to("../../shared/stage.sh")
    first = fingerprint_of(home)
    assert fingerprint_of(home) == first == setup_cache.fingerprint(folder, config_of(home))
    homes.script(shared, homes.good("run", ": changed"))
    assert fingerprint_of(home) != first


def fingerprint_of(home: homes.HomeForTests) -> str:
    """The fingerprint that a new night records."""
    return str(homes.read(home.home.data_file("cnn", home.night()["stamp"]))["night"]["fingerprint"])


def config_of(home: homes.HomeForTests) -> dict[str, Any]:
    """The config that the last night records."""
    return dict(homes.read(home.home.data_file("cnn", home.last()["stamp"]))["night"]["config"])


def test_a_night_whose_experiments_need_no_tvm_gets_none(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "empty")
    homes.write(home.experiment("plain") / "fields.json", {"needs_tvm": False})
    home.subsystem("website")
    assert "TVM: none; no experiment needs it." in home.run(verb="plan").output
    night = home.night()
    data = homes.read(home.home.data_file("plain", night["stamp"]))
    assert (night["artifacts"], data["tvm_hash"], data["night"]["artifact"]) == ([], "", None)
    assert not list((tmp_path / "empty").iterdir())


def test_an_experiment_without_tvm_runs_also_where_the_others_tvm_cannot_be_had(tmp_path: Path) -> None:
    home = homes.make_home(tmp_path, tmp_path / "empty")
    homes.write(home.experiment("plain") / "fields.json", {"needs_tvm": False})
    home.experiment("cnn")
    assert home.run().code == 1
    assert home.states("plain")["summarize"] == "ok"
    assert home.states("cnn")["run"] == "blocked"


def test_the_home_is_archived_before_and_after(home: homes.HomeForTests, tmp_path: Path) -> None:
    home.experiment("cnn")
    stamp = home.night()["stamp"]
    found = archive.archives(home.root / "backup")
    assert [(info.name, info.broken) for info in found] == [(f"{stamp}-before", ""), (f"{stamp}-after", "")]
    archive.restore(home.root / "backup", f"{stamp}-after", tmp_path / "again")
    again = tmp_path / "again"
    assert again.joinpath(f"results/experiments/data/cnn/data_{stamp}.json").is_file()
    assert not list(again.glob("**/.ballast*"))


def test_scripts_run_from_private_folders_in_a_home_with_spaces_and_umlauts(
    tmp_path: Path, tvm_artifact_folder: Path
) -> None:
    home = homes.make_home(tmp_path / "ein Haus für Läufe", tvm_artifact_folder)
    home.experiment("größe 1")
    home.subsystem("web site")
    home.night()
    assert len(home.home.data_stamps("größe 1")) == 1


def test_a_stage_sees_the_stated_environment_and_nothing_of_the_caller(home: homes.HomeForTests) -> None:
    home.configure(env={"FROM_HOME": "1", "BOTH": "home"})
    home.experiment("cnn", config={"env": {"BOTH": "job"}}, run=homes.good("run", f'env > "{home.root}/env"'))
    assert home.run_with({"SECRET_OF_CALLER": "x", "LC_ALL": "C"}).code == 0
    lines = dict(line.partition("=")[::2] for line in (home.root / "env").read_text().splitlines())
    assert "SECRET_OF_CALLER" not in lines
    assert (lines["FROM_HOME"], lines["BOTH"], lines["LC_ALL"]) == ("1", "job", "C.UTF-8")
    assert lines["BENCHMARK_DEPS"] == str(homes.REPO / "shared")
    assert lines["TVMDASH_NIGHT"] == home.stamps()[0]
    assert Path(lines["TMPDIR"]).parts[:-1] != ("/",)


def test_inactive_jobs_do_not_run(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.experiment("rest", config={"active": False})
    home.night()
    assert [job["name"] for job in home.last()["jobs"]] == ["cnn"]


def test_an_edit_during_the_night_changes_nothing_under_way(home: homes.HomeForTests) -> None:
    folder = home.code / "experiments" / "cnn"
    home.experiment("cnn", run=homes.good("run", f'echo "exit 9" > "{folder}/analyze.sh"'))
    home.night()
    assert home.states("cnn")["analyze"] == "ok"


def test_two_nights_in_one_second_have_different_stamps(home: homes.HomeForTests) -> None:
    (home.root / "tmp").mkdir()
    home.experiment("cnn")
    for _ in range(3):
        home.night()
    assert len(set(home.stamps())) == 3


def test_an_unpublished_record_format_of_strangers_becomes_series(home: homes.HomeForTests) -> None:
    raw = """echo '{"gpu": {"O3": [1, 2.5]}, "name": "x", "tvm_hash": ["not", "a", "hash"]}' > "$2/raw.json\""""
    home.experiment("cnn", run=f"{homes.BEGIN}{raw}\n{homes.says('run')}\n")
    stamp = home.night()["stamp"]
    from tvmdash.series import store

    with store.open_for_reading(home.home.store_file, home.home.data("cnn"), "cnn") as opened:
        series = {one.labels["path"]: one.values for one in opened.series("cnn")}
    assert series == {"$.gpu.O3[0]": (1.0,), "$.gpu.O3[1]": (2.5,)}
    assert isinstance(homes.read(home.home.data_file("cnn", stamp))["tvm_hash"], str)


def test_many_jobs_side_by_side_do_not_end_one_another(home: homes.HomeForTests) -> None:
    home.configure(parallel_stages=8)
    for index in range(16):
        home.experiment(f"e{index:02}", **{stage: homes.good(stage, "(sleep 300 &) ; true") for stage in homes.STAGES})
    done = home.run()
    assert done.code == 0, done.output
    assert "background processes left running were killed" in home.status("e07", "visualize")["message"]
    assert home.processes() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_a_stage_locked_does_not_stay(home: homes.HomeForTests) -> None:
    home.experiment("cnn", run=homes.good("run", 'mkdir -p "$TMPDIR/a/b" && chmod 0 "$TMPDIR/a"'))
    home.night()
    assert not list((home.root / "tmp").glob("2*"))


def test_points_that_failed_make_the_night_not_well_and_are_said(home: homes.HomeForTests) -> None:
    failure = '{"workload": "a.b", "values": {}, "error": "wrong answer"}'
    empty = f'{{"schema_version": 1, "tvm_hash": "x", "records": [], "failures": [{failure}]}}'
    home.experiment("cnn", analyze=f"{homes.BEGIN}printf '%s' '{empty}' > $3/data.json\n{homes.says('analyze')}\n")
    done = home.run()
    assert done.code == 1
    assert "experiment cnn: 1 point FAILED" in done.output
    assert home.states("cnn")["summarize"] == "ok"
    assert home.run(verb="status").code == 1


def test_the_archive_after_a_night_holds_its_whole_record(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.night()
    archive.restore(home.root / "backup", None, home.root / "restored")
    restored = homes.read(home.root / "restored" / "results" / "nights" / f"{home.stamps()[0]}.json")
    assert restored["state"] == "complete"
    assert restored == home.last()


def test_a_folder_of_ones_own_is_looked_in_before_the_repositorys(home: homes.HomeForTests) -> None:
    home.experiment("mine")
    homes.write(home.home.config("subsystem", "website") / "config.json", {"active": True})
    done = home.run()
    assert done.code == 0, done.output
    assert (home.home.output("website") / "site.css").exists()


def test_a_night_without_experiments_leaves_an_index_of_all_that_have_data(home: homes.HomeForTests) -> None:
    home.experiment("good")
    home.night()
    stamps = home.stamps()
    homes.write(home.home.config("experiment", "good") / "config.json", {"active": False})
    home.home.store_file.unlink()
    home.night()
    assert indexes.list_indexed(home.home, "good") == set(stamps)
