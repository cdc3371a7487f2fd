"""The documentation is true: every stage, field, column and verb that it promises is there, and no link is dead."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from dashboard.cli import main as cli
from tvmdash import common, config_util, records
from tvmdash.dashboard_info.stages import PIPELINES

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *REPOSITORY.glob("*.md"), *REPOSITORY.glob("*/README.md")])


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def maker(name: str) -> ModuleType:
    """The script tests/NAME.py, which makes a part of the documentation."""
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "tests" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


def test_the_config_page_is_what_the_fields_say() -> None:
    page = maker("make_config_docs").page()
    assert text("reference/config.md") == page, "run: python3 tests/make_config_docs.py > docs/reference/config.md"


def test_the_commands_page_is_what_the_parsers_say() -> None:
    page = maker("make_commands_docs").page()
    assert text("reference/commands.md") == page, (
        "run: python3 tests/make_commands_docs.py > docs/reference/commands.md"
    )


def test_the_rules_page_is_what_the_judge_decides_by() -> None:
    page = maker("make_rules_docs").page()
    assert text("reference/rules.md") == page, "run: python3 tests/make_rules_docs.py > docs/reference/rules.md"


def test_the_schemas_and_their_page_are_what_the_dataclasses_say() -> None:
    for path, content in maker("make_schemas").outputs().items():
        assert path.read_text(encoding="utf-8") == content, f"{path}: run: python3 tests/make_schemas.py"
        if path.suffix == ".json":
            Draft202012Validator.check_schema(json.loads(content))


def test_every_field_says_what_it_is_for() -> None:
    fields = [config_util.HOME_FIELDS, config_util.EXPERIMENT_FIELDS, config_util.SUBSYSTEM_FIELDS]
    fields += [config_util.read_fields(path) for path in REPOSITORY.glob("*/*/fields.json")]
    for group in [*fields, *config_util.FIELD_SETS.values()]:
        assert not [name for name, field in group.items() if not field.doc]


@pytest.mark.parametrize("row", PIPELINES, ids=lambda row: str(row.kind))
def test_the_protocol_page_has_each_stage_with_its_arguments_and_time_limit(row: object) -> None:
    page = text("reference/protocol.md")
    for stage in row.stages:  # type: ignore[attr-defined]
        pattern = (
            rf"\| {row.kind} \| `{stage.script}`[^|]* \| {', '.join(stage.arguments)} \|[^|]*\| {stage.timeout_s} \|"  # type: ignore[attr-defined]
        )
        assert re.search(pattern, page), f"{stage.name}: {pattern}"
        if stage.leaves:
            assert stage.leaves in page


def test_every_verb_of_the_command_line_is_in_the_written_docs() -> None:
    written = (path for path in PAGES if path.name not in {"commands.md", "config.md", "rules.md", "schemas.md"})
    whole = "".join(path.read_text(encoding="utf-8") for path in written)
    verbs = next(
        action.choices for action in cli._make_parser()._actions if hasattr(action, "choices") and action.choices
    )
    assert not [verb for verb in verbs if f"dashboard {verb}" not in whole and f"--command {verb}" not in whole]


def test_the_record_schema_describes_the_columns_that_identify_a_series() -> None:
    schema = common.read_json(records.SCHEMAS / "data_v1.json")
    columns = set(schema["$defs"]["record"]["properties"])
    assert set(records.IDENTITY) < columns
    assert columns == set(records.Record.__dataclass_fields__)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_link_is_dead(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    dead = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not dead


def test_the_site_is_built_and_none_of_its_links_and_anchors_is_dead(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "html_theme=basic"]  # furo takes 5 s more
    argv += ["-d", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "site")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "commands.html").is_file()


def test_the_written_pages_stay_readable_in_an_afternoon() -> None:
    generated = {DOCS / "reference" / f"{name}.md" for name in ("commands", "config", "rules", "schemas")}
    pages = {REPOSITORY / "README.md", *DOCS.rglob("*.md")} - generated
    words = {path: len(path.read_text(encoding="utf-8").split()) for path in pages}
    assert sum(words.values()) <= 25_000, sorted(words.items(), key=lambda item: -item[1])[:5]


def test_a_decision_takes_ten_lines() -> None:
    notes = {path.name: path.read_text(encoding="utf-8").splitlines() for path in DOCS.glob("decisions/0*.md")}
    assert notes
    assert not [name for name, lines in notes.items() if len(lines) > 10 or max(map(len, lines)) > 120]


def test_the_readmes_commands_are_there_and_ci_runs_the_same() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for command in ("run_dashboard.sh", "dashboard_job.sh", "tests/run.sh"):
        assert command in readme
        assert (REPOSITORY / command).stat().st_mode & stat.S_IXUSR
    assert "tests/run.sh" in (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")


def test_every_experiment_and_subsystem_is_documented() -> None:
    whole = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    folders = [path.parent for row in PIPELINES for path in (REPOSITORY / row.folder).glob("*/run.sh")]
    assert folders
    assert not [folder.name for folder in folders if folder.name not in whole]


@pytest.mark.usefixtures("tvm_artifact")
def test_the_pages_own_model_gives_the_answer_that_it_names() -> None:
    from tvmdash.relax_templates import CompileOptions
    from tvmdash.relax_util.workloads import prepare_program

    (block,) = re.findall(r"```python\n(from tvmdash.*?)```", text("tutorial/own-experiment.md"), re.DOTALL)
    names: dict[str, Any] = {"np": np}
    exec(block, names)
    checked = prepare_program(names["OwnModel"]().program(None, None, 0), CompileOptions(), threads=1).check
    assert checked
    assert checked()["max_error"] <= 1e-5


def _examples_of_the_library() -> list[str]:
    found: list[str] = re.findall(r"```python\n(.*?)```", text("reference/library.md"), re.DOTALL)
    return found


def test_the_librarys_example_without_tvm_is_timed_and_checked() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    exec(_examples_of_the_library()[0], names)
    experiment = names["Sorting"]()
    points = experiment.points({})
    assert [(point.name, point.values["size"]) for point in points] == [("ints", 1000), ("ints", 10000)]
    ready = experiment.prepare(points[0], {}, seed=1)
    assert ready.check()["max_error"] == 0
    assert len(ready.timer(2, 3)) == 3
    assert ready.describe()["workload_args"]["inputs"] == [{"shape": [1000], "dtype": "int64"}]


@pytest.mark.usefixtures("tvm_artifact")
def test_the_librarys_example_on_relax_gives_the_right_answer_and_what_its_compilation_cost() -> None:
    names: dict[str, Any] = {}
    exec(_examples_of_the_library()[1], names)
    ready = names["prepare_relu"](seed=1)
    assert ready.check()["max_error"] == 0
    assert all(elapsed_ns > 0 for elapsed_ns in ready.timer(2, 3))
    assert ready.compile_ms > 0
    assert ready.code_size_bytes > 0


def test_the_pages_experiment_runs_in_as_many_lines_as_it_shows(tmp_path: Path, tvm_artifact_folder: Path) -> None:
    page = text("tutorial/own-experiment.md")
    blocks = dict(reversed(re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)))
    folder = tmp_path / "experiments" / "mlp_batches"
    folder.mkdir(parents=True)
    (tmp_path / "shared").symlink_to(REPOSITORY / "shared")
    (folder / "fields.json").write_text(blocks["json"])
    (folder / "mlp_batches.py").write_text(blocks["python"])
    assert len((blocks["json"] + blocks["python"]).splitlines()) <= 25
    subprocess.run(["bash", "-euc", blocks["bash"]], cwd=folder, check=True)
    env = {**os.environ, "TVMDASH_ARTIFACTS": str(tvm_artifact_folder)}
    argv = [sys.executable, "-m", "dashboard", "smoke", str(folder), "--scratch", str(tmp_path / "home")]
    done = subprocess.run(argv, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (data,) = (tmp_path / "home" / "results" / "experiments" / "data" / "mlp_batches").glob("data_*.json")
    found = records.read_data(data, "mlp_batches").records
    assert [(record.workload, record.labels["workload_args"]) for record in found] == [
        ("experiment.mlp_batches", {"batch": batch}) for batch in (1, 16, 64)
    ]
    assert all(record.additional_info["max_error"] <= record.additional_info["tolerance"] for record in found)
