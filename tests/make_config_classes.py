"""Write the fields of the config dataclasses from what describes them: `tests/python.sh tests/make_config_classes.py`.

A job's fields.json is the one place where its fields are described, since `plan` and `check` read it without running
the job's code; so are the tables of `config_util.fields` for what all jobs share. The dataclasses tell a type checker
the same. A base class in the job's folder, for a module that works with a part of the config, holds what it names.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from tvmdash import config_util
from tvmdash.config_util import EXPERIMENT_FIELDS, FIELD_SETS, JOB_FIELDS, Fields, JobConfig, annotation_of
from tvmdash.config_util.fields import OF_A_SIZE
from tvmdash.experiment.config import ExperimentConfig, MeasuringConfig
from tvmdash.notify.channel import SlackConfig

REPOSITORY = Path(__file__).resolve().parent.parent
LIBRARY = REPOSITORY / "shared" / "python" / "tvmdash"
SHARED: Mapping[str, set[str]] = {
    kind.__name__: {item.name for item in fields(kind)} for kind in (JobConfig, ExperimentConfig, SlackConfig)
}
"""The library's own config classes, and what a class that derives from one holds by it."""
IN_THE_LIBRARY: Mapping[type, tuple[str, Fields]] = {
    JobConfig: ("config_util/typed.py", JOB_FIELDS),
    MeasuringConfig: ("experiment/config.py", FIELD_SETS["timing"]),
    ExperimentConfig: ("experiment/config.py", EXPERIMENT_FIELDS),
    SlackConfig: ("notify/channel.py", {**FIELD_SETS["slack"], "env": JOB_FIELDS["env"]}),
}
NOT_HELD: Mapping[type, set[str]] = {
    MeasuringConfig: {"threads"},  # a list in some experiments
    ExperimentConfig: {*JOB_FIELDS, *OF_A_SIZE},  # it has the former by JobConfig, and they stand for other fields
}


@functools.cache
def outputs() -> dict[Path, str]:
    """Each file with a config dataclass, and what it holds once that is true."""
    made: dict[Path, str] = {}
    for kind, (name, known) in IN_THE_LIBRARY.items():
        path = LIBRARY / name
        own = {name: field for name, field in known.items() if name not in NOT_HELD.get(kind, set())}
        made[path] = _with_fields(made.get(path) or path.read_text(encoding="utf-8"), kind.__name__, own)
    for path in sorted(REPOSITORY.glob("*/*/fields.json")):
        made |= dict(_outputs_of_job(path))
    return made


def _outputs_of_job(file: Path) -> Iterator[tuple[Path, str]]:
    """The modules of one job that hold its config class or a base of it."""
    known = config_util.read_fields(file)
    named = json.loads(file.read_text(encoding="utf-8"))
    known = {
        name: known[name] for name in sorted(known, key=lambda name: name not in named)
    }  # the job's own ones first
    classes = {
        node.name: (path, node)
        for path in sorted(file.parent.glob("**/*.py"))
        if "setup" not in path.parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    for name, (path, node) in classes.items():
        if not {"JobConfig", "ExperimentConfig"} & set(_bases(node)):
            continue
        held: set[str] = set()
        for base in _all_bases(node, classes):
            held |= SHARED.get(base, set())
            if base in classes:
                place, found = classes[base]
                part = {key: field for key, field in known.items() if key in _field_names(found)}
                held |= set(part)
                yield place, _with_fields(place.read_text(encoding="utf-8"), base, part)
        own = {key: field for key, field in known.items() if key not in held}
        yield path, _with_fields(path.read_text(encoding="utf-8"), name, own)


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def _all_bases(node: ast.ClassDef, classes: Mapping[str, tuple[Path, ast.ClassDef]]) -> Iterator[str]:
    for base in _bases(node):
        yield base
        if base in classes:
            yield from _all_bases(classes[base][1], classes)


def _field_names(node: ast.ClassDef) -> list[str]:
    return [
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]


def _with_fields(text: str, name: str, own: Fields) -> str:
    """The module with these fields, and no others, in the class of that name, below its docstring."""
    (node,) = [item for item in ast.parse(text).body if isinstance(item, ast.ClassDef) and item.name == name]
    lines = text.splitlines(keepends=True)
    doc, *rest = node.body
    after = next((item for item in rest if not isinstance(item, ast.AnnAssign)), None)
    assert doc.end_lineno is not None
    assert node.end_lineno is not None
    end = (
        node.end_lineno
        if after is None
        else min(part.lineno for part in (after, *getattr(after, "decorator_list", ()))) - 1
    )
    new = [f"    {key}: {annotation_of(field)}\n" for key, field in own.items()]
    new = (["\n", *new] if new else []) + (["\n"] if after is not None else [])
    return "".join([*lines[: doc.end_lineno], *new, *lines[end:]])


if __name__ == "__main__":
    for path, content in outputs().items():
        path.write_text(content, encoding="utf-8")
