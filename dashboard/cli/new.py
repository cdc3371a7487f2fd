"""`new`: create a working experiment or subsystem with its test."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from dashboard.authoring.skeletons import LANGUAGES, write_new_job
from dashboard.cli.arguments import OK_CODE, Verbs, make_absolute
from dashboard.plan.job import REPOSITORY
from tvmdash.dashboard_info.stages import PIPELINES, Pipeline, pipeline


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    """Add it to the command line."""
    new = verbs.add_parser("new", help="create a working experiment or subsystem with its test")
    new.add_argument("kind", choices=[row.kind for row in PIPELINES])
    new.add_argument("name", metavar="NAME", help="name: lower-case letters, digits and underscores")
    languages = new.add_mutually_exclusive_group()
    for language, help_text in zip(
        LANGUAGES, ("write it in Python (default)", "Bash alone", "measure a C function"), strict=True
    ):
        languages.add_argument(f"--{language}", dest="language", action="store_const", const=language, help=help_text)
    new.add_argument(
        "--in",
        dest="folder",
        type=make_absolute,
        metavar="FOLDER",
        help="folder to create it in (default: this repository)",
    )
    new.set_defaults(verb=_new, language=LANGUAGES[0])


def _new(arguments: argparse.Namespace) -> int:
    row, name = pipeline(arguments.kind), arguments.name
    folder = (arguments.folder or REPOSITORY / row.folder) / name
    test = folder / f"test_{name}.py" if arguments.folder else REPOSITORY / "tests" / row.folder / f"test_{name}.py"
    write_new_job(row, name, arguments.language, folder, test)
    print(_format_next_steps(row, name, folder, test))
    return OK_CODE


def _format_next_steps(row: Pipeline, name: str, folder: Path, test: Path) -> str:
    private = not folder.is_relative_to(REPOSITORY)
    argument = shlex.quote(str(folder)) if private else name
    config = f"HOME/config/{row.folder}/{name}"
    lines = [
        f"Created {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}",
        *([] if test.parent == folder else [f"Written: {test}"]),
        f"Try it:           python3 -m dashboard smoke {argument}",
        f"Test it:          tests/python.sh -m pytest {shlex.quote(str(test))}",
        f"Add it to HOME:    mkdir -p {config} && echo '{{\"active\": true}}' > {config}/config.json",
    ]
    if private:
        lines.append(f'and list its folder in HOME/config/config.json: "{row.kind}_dirs": ["{folder.parent}"]')
    return "\n".join(lines)
