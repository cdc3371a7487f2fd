"""A switch for tests: every string that is written for people becomes an identifier, in all processes of a night.

`python -m tests.identifiers VERB ...` is the dashboard so switched: between two steps each text in the files that one
program left for the next is replaced, and so are errors and notes. `install` switches a program's own sentence makers.
The same text always becomes the same identifier, and an empty one stays empty.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tvmdash.errors import DashboardError

_MAKERS = re.compile(r"(\w+_)?in_words|describe\w*|headline|\w+_text|format_\w+|cause_in_short|night_sentence")
_NO_MAKERS = {"stat_text", "read_text", "write_text", "_as_text", "plain_text", "format_failure"}
"""No sentence comes from them, or one whose parts are identifiers already."""
TEXTS = {
    "summary.json": {"title", "value", "lines"},
    "report.json": {"title", "value"},
    "verdict.json": {"headline"},
    "page.json": {"words", "reason", "headline", "details", "alt", "message", "faults"},
    "incidents.json": {"words", "notes"},
    "deadlines.json": {"words", "left", "moment"},
    "in_slack.json": {"words", "headline", "details"},
}
"""By file, the fields that hold text for people."""
_DATA = {"error"}


def identifier(text: str) -> str:
    """What stands for a text, line by line."""
    return "\n".join(map(_of_line, text.split("\n")))


def _of_line(text: str) -> str:
    """As long as the text, as far as that goes: how much room a text takes is no matter of what it says."""
    known = not text or re.fullmatch(r"#[0-9a-f]{10}-*#", text)
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:10]
    return text if known else f"#{digest}{'-' * (len(text) - len(digest) - 2)}#"


def translated(value: Any, names: set[str], *, inside: bool = False) -> Any:
    """The JSON value with an identifier for each text in fields of these names."""
    if isinstance(value, str):
        return identifier(value) if inside else value
    if isinstance(value, list):
        return [translated(item, names, inside=inside) for item in value]
    if isinstance(value, dict):
        return {name: translated(item, names, inside=inside or name in names) for name, item in value.items()}
    return value


def _rewrite(path: Path, names: set[str]) -> None:
    text = path.read_text(encoding="utf-8")
    value = json.loads(text)
    new = translated(value, names)
    if new != value:
        path.write_text(json.dumps(new), encoding="utf-8")


def rewrite(root: Path) -> None:
    """Replace the texts in all files below `root` that one program leaves for another."""
    for name, fields in TEXTS.items():
        for path in root.rglob(name):
            _rewrite(path, fields)


def install(own: Path) -> None:
    """Let every sentence maker of tvmdash, the dashboard and the program in the folder `own` give identifiers."""
    DashboardError.__str__ = _named(DashboardError.__str__)  # type: ignore[method-assign]
    done: dict[FunctionType, Callable[..., str]] = {}
    for module in list(_modules(own)):
        for name, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and _makes_a_sentence(value):
                setattr(module, name, done.setdefault(value, _named(value)))


def _modules(own: Path) -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/").resolve()
        if name.partition(".")[0] in {"tvmdash", "dashboard"} or own in file.parents:
            yield module


def _makes_a_sentence(function: FunctionType) -> bool:
    is_text = function.__annotations__.get("return") in ("str", str)
    name = function.__name__.lstrip("_")
    return is_text and name not in _NO_MAKERS and _MAKERS.fullmatch(name) is not None


def _named(function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def named(*arguments: Any, **options: Any) -> str:
        return identifier(function(*arguments, **options))

    return named


def _switch_the_night() -> None:
    from dashboard.night import engine, journal

    perform, note, record = engine.perform, journal.Journal.note, journal.Journal.record

    def perform_then_rewrite(context: Any, job: Any, stage: Any) -> Any:
        result = perform(context, job, stage)
        rewrite(context.home.root / "results")
        data = context.home.data_file(job.name, context.stamp)
        if data.is_file():
            _rewrite(data, _DATA)
        return result

    def record_named(self: Any, job: Any, result: Any, log: Path | None = None) -> None:
        texts = {"message": identifier(result.message), "log_tail": identifier(result.log_tail)}
        record(self, job, replace(result, **texts), log)

    def note_named(self: Any, words: str, **options: Any) -> None:
        note(self, identifier(words), **options)

    engine.perform = perform_then_rewrite
    journal.Journal.note = note_named  # type: ignore[method-assign]
    journal.Journal.record = record_named  # type: ignore[method-assign]


def switch_program(script: Path) -> None:
    """Make a subsystem's copied main module switch itself on as soon as it has imported everything."""
    text = script.read_text(encoding="utf-8")
    guard = 'if __name__ == "__main__":\n'
    assert text.count(guard) == 1
    repository = Path(__file__).resolve().parent.parent
    lines = (
        f"    sys.path.append({str(repository)!r})",
        "    from tests import identifiers",
        "    identifiers.install(identifiers.Path(__file__).resolve().parent)",
    )
    script.write_text(text.replace(guard, guard + "\n".join(lines) + "\n"), encoding="utf-8")


def facts(value: Any, marks: Mapping[str, str]) -> Any:
    """A JSON value without what another run of the same night has otherwise: times and sizes, and `marks` by name."""
    if isinstance(value, dict):
        return {facts(name, marks): facts(item, marks) for name, item in value.items() if name not in _OF_A_RUN}
    if isinstance(value, list):
        return [facts(item, marks) for item in value]
    if isinstance(value, str):
        for mark, name in marks.items():
            value = value.replace(mark, name)
    return value


_OF_A_RUN = frozenset(
    ("elapsed_s", "started_ns", "seconds", "ended", "telemetry", "at", "fingerprint", "digest", "size", "seconds_left")
)


def differences(plain: Any, named: Any, place: str = "$") -> Iterator[str]:
    """Where two values differ, but for a text and the identifier that stands for one."""
    if isinstance(plain, dict) and isinstance(named, dict):
        for name in sorted({*plain, *named}):
            if name in plain and name in named:
                yield from differences(plain[name], named[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}: only in one"
    elif isinstance(plain, list) and isinstance(named, list) and len(plain) == len(named):
        for index, (one, other) in enumerate(zip(plain, named, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif plain != named and not _stands_for(named, plain):
        yield f"{place}: {plain!r:.200} is {named!r:.200}"


def _stands_for(named: Any, plain: Any) -> bool:
    """Whether it may be identifiers for a text: as many lines of them."""
    texts = isinstance(plain, str) and isinstance(named, str)
    return texts and "#" in named and named.count("\n") == plain.count("\n")


def main() -> int:
    """The dashboard's command line, switched."""
    from dashboard.cli import main as command_line

    _switch_the_night()
    install(Path("/nowhere"))
    return command_line.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
