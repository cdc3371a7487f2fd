"""What `results` prints: a page that GitHub shows as tables, with every failure, whatever things are called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main as cli
from dashboard.cli.arguments import OK_CODE, USAGE
from dashboard.plan.job import CodeFolders
from dashboard.report import night_page, results
from dashboard.report.tables import escape
from tests.dashboard.result_homes import HOSTILE, STAMP, data, home, job, record
from tests.golden_files import Golden
from tvmdash.dashboard_info import Home, pages


def page(made: Home) -> str:
    return night_page.format_page(results.read(made, None, CodeFolders()))


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table: rows of equal length, without the line of dashes."""
    found: list[list[list[str]]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif found[-1]:
            found.append([])
    kept = [[row for row in table if not set("".join(row)) <= set("-:")] for table in found if table]
    assert all(len({len(row) for row in table}) == 1 for table in kept), text
    return kept


def table_with(text: str, head: str) -> list[list[str]]:
    (found,) = [table for table in tables(text) if head in table[0]]
    return found


NETWORKS = [
    record("network.mlp", 0.5, build_config={"variant": "untuned"}, runtime_config={"threads": 1}, code_size=19_800),
    record("network.mlp", 0.25, build_config={"variant": "tuned"}, runtime_config={"threads": 1}, code_size=20_035),
    record("network.mlp", 0.125, "onnxruntime", build_config={"variant": "default"}, runtime_config={"threads": 1}),
    record("network.dqn", 8.0, build_config={"variant": "untuned"}, runtime_config={"threads": 1}, code_size=43_300),
    record("network.dqn", 2.0, "onnxruntime", build_config={"variant": "default"}, runtime_config={"threads": 1}),
]


FAILURES = [
    {"workload": "network.dqn", "values": {"variant": "tuned", "engine": "tvm"}, "error": "no\ndatabase"},
    {"workload": "network.vgg", "values": {"variant": "tuned", "engine": "tvm"}, "error": "no database"},
    {"workload": "network.vgg", "values": {"variant": "untuned", "engine": "tvm"}, "error": "x" * 2000},
]


def test_messages(tmp_path: Path, golden: Golden) -> None:
    doubted = [record(f"network.{at}", 1.0, doubts=["load 3.5 on 2 cores"]) for at in range(2)]
    config = {"active": True, "size": "smoke", "networks": ["mlp"], "max_minutes": 3.0, "title": "t"}
    homes = {
        "engines and failures": home(tmp_path / "a", {"cnn_comp": data(NETWORKS, FAILURES)}),
        "nothing ran": home(tmp_path / "b", {}),
        "no numbers": home(tmp_path / "c", {}, [job("tuning", "run.sh was killed by SIGKILL.", title="Tuning")]),
        "every point failed": home(tmp_path / "d", {"cnn_comp": data([], FAILURES[:1])}),
        "doubts, and a config": home(tmp_path / "e", {"relax_opt": data(doubted, config=config)}),
    }
    golden.messages("results", [(name, page(made)) for name, made in homes.items()])


def test_workloads_are_rows_and_engines_with_their_variants_columns(tmp_path: Path) -> None:
    text = page(home(tmp_path / "h", {"cnn_comp": data(NETWORKS)}))
    (times,) = [table for table in tables(text) if "onnxruntime, default" in table[0]]
    assert times == [
        ["workload", "tvm, untuned", "tvm, tuned", "onnxruntime, default"],
        ["mlp", "0.500 ms (0.450 to 0.550)", "0.250 ms (0.225 to 0.275)", "0.125 ms (0.113 to 0.138)"],
        ["dqn", "8.00 ms (7.20 to 8.80)", "", "2.00 ms (1.80 to 2.20)"],
    ]
    assert "Everywhere: threads 1\n" in text
    assert "20,035 bytes" in text, "an exact number has all its digits"
    assert "onnxruntime: 2.83x slower" in text


def test_failed_points_stand_in_their_place_and_one_reason_is_told_once(tmp_path: Path) -> None:
    text = page(home(tmp_path / "h", {"cnn_comp": data(NETWORKS, FAILURES)}))
    (times,) = [table for table in tables(text) if "onnxruntime, default" in table[0]]
    assert times[2][2] == "failed"
    assert times[3] == ["vgg", "failed", "failed", ""]
    assert "- 2 points: no database." in text
    assert max(len(line) for line in text.splitlines()) < 900
    assert ["[cnn_comp](#cnn_comp)", "12 s", "1 min 30 s", "1 min 42 s", "5", "3"] in tables(text)[1]


def test_an_experiment_of_which_every_point_failed_says_so_without_a_table(tmp_path: Path) -> None:
    failures = [{"workload": "network.a", "values": {}, "error": "out of memory"}]
    text = page(home(tmp_path / "h", {"cnn_comp": data([], failures)}))
    assert "1 point: out of memory" in text
    assert "Run time" not in text


def test_an_experiment_that_left_nothing_says_why(tmp_path: Path) -> None:
    text = page(home(tmp_path / "h", {}, [job("tuning", "run.sh was killed by SIGKILL.", title="Tuning")]))
    assert "killed by SIGKILL" in text
    assert "*Tuning.*" in text


def test_a_data_file_that_cannot_be_read_costs_its_own_experiment_only(tmp_path: Path) -> None:
    made = home(tmp_path / "h", {"broken": {"records": 5}, "relax_opt": data([record("network.mlp", 1.0)])})
    text = page(made)
    assert "No numbers. " in text
    assert "broken/data_20261121T031500Z.json: " in text
    assert "1.00 ms (0.900 to 1.10)" in text


def test_a_night_without_experiments_and_a_home_without_nights_are_told(tmp_path: Path) -> None:
    assert "No experiment ran" in page(home(tmp_path / "h", {}))
    assert cli.main(["results", str(tmp_path)]) == USAGE
    assert cli.main(["results", str(tmp_path / "gone")]) == USAGE


def test_a_night_that_is_not_there_is_a_usage_error_that_lists_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = home(tmp_path / "h", {})
    assert cli.main(["results", str(made.root), "20200101T000000Z"]) == USAGE
    assert STAMP in capsys.readouterr().err


def test_an_experiment_of_tvm_alone_is_compared_with_nobody(tmp_path: Path) -> None:
    text = page(home(tmp_path / "h", {"relax_opt": data([record("network.mlp", 1.0), record("network.dqn", 2.0)])}))
    assert "against" not in text.partition("## relax_opt")[2]
    assert table_with(text, "value")[1:] == [["mlp", "1.00 ms (0.900 to 1.10)"], ["dqn", "2.00 ms (1.80 to 2.20)"]]


def test_names_that_do_harm_stay_text_in_their_cell(tmp_path: Path) -> None:
    records = [
        record("network." + HOSTILE.replace("\n", ""), 1.0, build_config={"variant": HOSTILE}),
        record("network.mlp", 1.0, HOSTILE, build_config={"variant": "zero"}, doubts=[HOSTILE]),
    ]
    failures = [{"workload": f"network.{HOSTILE}", "values": {"variant": HOSTILE}, "error": HOSTILE}]
    jobs = [job("cnn_comp", title=HOSTILE, description=HOSTILE)]
    text = page(home(tmp_path / "h", {"cnn_comp": data(records, failures, config={"env": HOSTILE})}, jobs))
    assert tables(text)
    assert "<img" not in text
    assert "\u202e" not in text
    assert not re.search(r"(?<!\\)`c", text)
    assert "[e](f)" not in text
    assert "\nh" not in text


def test_text_is_escaped_only_where_markdown_would_take_it_for_something() -> None:
    assert escape("a|b") == r"a\|b"
    assert escape("conv2d_add 3 < 4 & _x_ #1") == r"conv2d_add 3 &lt; 4 &amp; \_x\_ \#1"
    assert escape("see https://x.org") == "see https&colon;//x.org"
    assert escape("a\n\nb\\") == "a b\\\\"


def test_many_ways_become_rows_and_many_columns_several_tables(tmp_path: Path) -> None:
    ways = [f"-Pass{number}" for number in range(8)]
    records = [record(f"network.{name}", 1.0, build_config={"passes": way}) for name in "abcdefg" for way in ways]
    first, second = [table for table in tables(page(home(tmp_path / "h", {"e": data(records)}))) if len(table) == 9]
    assert [row[0] for row in first[1:]] == ways
    assert (first[0], second[0]) == (["", "a", "b", "c", "d"], ["", "e", "f", "g"])


def test_what_was_measured_in_other_ways_has_a_table_of_its_own(tmp_path: Path) -> None:
    records = [record("machine.copy", 1.0, "numpy"), record("topi.add", 1.0), record("topi.add", 2.0, "onnxruntime")]
    text = page(home(tmp_path / "h", {"operators": data(records)}))
    assert ["workload", "numpy"] in [table[0] for table in tables(text)]
    assert ["workload", "tvm", "onnxruntime"] in [table[0] for table in tables(text)]


def test_two_points_that_have_one_name_are_both_there(tmp_path: Path) -> None:
    records = [record("network.a", 1.0, target="llvm"), record("network.a", 2.0, target="cuda")]
    (times,) = tables(page(home(tmp_path / "h", {"e": data(records)})).partition("## e\n")[2])
    assert times == [["workload", "llvm", "cuda"], ["a", "1.00 ms (0.900 to 1.10)", "2.00 ms (1.80 to 2.20)"]]


def test_arguments_are_told_where_a_workload_has_several(tmp_path: Path) -> None:
    sizes: list[dict[str, Any]] = [{"hidden": 64, "batch": 1}, {"hidden": 128, "batch": 1}]
    records = [record("rnn.lstm", 1.0, workload_args=size) for size in sizes]
    (times,) = tables(page(home(tmp_path / "h", {"e": data(records)})).partition("## e\n")[2])
    assert [row[0] for row in times[1:]] == ["lstm, hidden 64", "lstm, hidden 128"]


def test_what_only_the_failed_points_had_otherwise_is_not_said_of_all(tmp_path: Path) -> None:
    records = [record("network.a", 1.0, runtime_config={"device": "sim", "threads": 1})]
    failures = [{"workload": "network.a", "values": {"device": "pi4", "threads": 1}, "error": "no answer"}]
    text = page(home(tmp_path / "h", {"remote_device": data(records, failures)}))
    assert "Everywhere: threads 1\n" in text
    (times,) = tables(text.partition("## remote")[2])
    assert times[1:] == [["a, device sim", "1.00 ms (0.900 to 1.10)"], ["a, device pi4", "failed"]]


def test_only_config_that_differs_from_the_defaults_of_its_size_is_told(tmp_path: Path) -> None:
    config = {"active": True, "size": "smoke", "networks": ["mlp"], "max_minutes": 3.0, "title": "t"}
    text = page(home(tmp_path / "h", {"relax_opt": data([record("network.mlp", 1.0)], config=config)}))
    assert "size smoke" in text
    assert "max_minutes 3.0\n" in text


def test_a_foreign_experiments_numbers_go_by_their_path(tmp_path: Path) -> None:
    text = page(home(tmp_path / "h", {"foreign": {"gpu": {"O3": 1.5}, "list": list(range(100))}}))
    assert [r"\$.gpu.O3", "1.50"] in table_with(text, "number")
    assert "And 41 more numbers." in text


def test_telemetrys_words_are_told_where_they_are_of_this_night(tmp_path: Path) -> None:
    made = home(tmp_path / "h", {"relax_opt": data([record("network.mlp", 1.0)])})
    assert "did not check this night" in page(made)
    made.output("telemetry").mkdir(parents=True)
    abnormal = ("The processor was throttled.",)
    run = pages.TelemetryRun("relax_opt", 0, abnormal, {}, (), 0, pages.Graph("graphs/relax_opt.svg", "clocks"))
    pages.write(made.output("telemetry") / "page.json", pages.TelemetryPage(STAMP, (run,)))
    assert page(made).count("was throttled.") == 2
    pages.write(made.output("telemetry") / "page.json", pages.TelemetryPage("20261120T031500Z", (run,)))
    assert "did not check this night" in page(made)


def test_doubts_of_one_kind_are_counted_together_whatever_their_words(tmp_path: Path) -> None:
    doubts: list[dict[str, list[str]]] = [
        {"doubts": [f"load {number}.5 on 2 cores"], "doubt_kinds": ["busy_machine"]} for number in (3, 4)
    ]
    records = [record(f"network.{at}", 1.0, **told) for at, told in enumerate([*doubts, {"doubts": []}])]
    text = page(home(tmp_path / "h", {"e": data(records)}))
    plain = [record(f"network.{at}", 1.0, doubts=["load 3.5 on 2 cores"]) for at in range(2)]
    assert "2 points: load 3.5" in page(home(tmp_path / "old", {"e": data(plain)}))
    assert "2 points: load 3.5" in text
    assert "(or alike)\n" in text


def test_the_command_writes_the_page_that_it_would_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = home(tmp_path / "h", {"relax_opt": data([record("network.mlp", 1.0)])})
    assert cli.main(["results", str(made.root)]) == OK_CODE
    printed = capsys.readouterr().out
    assert cli.main(["results", str(made.root), STAMP, "--output", str(tmp_path / "r.md")]) == OK_CODE
    assert (tmp_path / "r.md").read_text(encoding="utf-8") == printed
    assert printed.startswith("# Results of one night\n")
    assert cli.main(["results", str(made.root), "--output", str(tmp_path / "gone" / "r.md")]) == USAGE
    assert "No such file or directory" in capsys.readouterr().err
