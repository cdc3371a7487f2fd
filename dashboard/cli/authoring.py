"""`new`, `smoke`: create an experiment or subsystem, and run all its stages with small sizes in a scratch home."""

from __future__ import annotations

import argparse
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

from dashboard.authoring.skeletons import LANGUAGES, write_new_job
from dashboard.cli.arguments import OK_CODE, Verbs, choose_exit_code, find_code, interrupt, make_absolute
from dashboard.plan.job import REPOSITORY, SAMPLE_HOME, CodeFolders
from tvmdash.dashboard_info import Home, Night
from tvmdash.dashboard_info.stages import PIPELINES, Pipeline, pipeline
from tvmdash.text import format_list

_NAMED = 12


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
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
    smoke = verbs.add_parser(
        "smoke", help="smoke-test an experiment or subsystem: run all its stages with small sizes in a scratch home"
    )
    smoke.add_argument("job", metavar="NAME", help="name, or path of its folder (with a /)")
    smoke.add_argument(
        "home", nargs="?", type=make_absolute, default=SAMPLE_HOME, metavar="HOME",
        help="home to take TVM and config from (default: the sample home); it is not modified",
    )  # fmt: skip
    smoke.add_argument(
        "--config", type=make_absolute, metavar="FILE", help="job config file to use instead of the home's"
    )
    smoke.add_argument(
        "--scratch",
        type=make_absolute,
        metavar="FOLDER",
        help="folder for the scratch home (default: a temporary folder)",
    )
    smoke.add_argument(
        "--experiments-dir", type=make_absolute, metavar="DIR", help="folder that contains the experiments"
    )
    smoke.add_argument("--subsystem-dir", type=make_absolute, metavar="DIR", help="folder that contains the subsystems")
    smoke.set_defaults(verb=_smoke)


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


def _smoke(arguments: argparse.Namespace) -> int:
    from dashboard.authoring import smoke  # the night's machinery; the other verbs start without it
    from dashboard.cli import status
    from dashboard.night import night

    signal.signal(signal.SIGTERM, interrupt)
    base = Home(arguments.home)
    trial = smoke.trial_of(arguments.job, base, find_code(arguments), arguments.config)
    home = smoke.make_scratch_home(trial, base, arguments.scratch)
    plan = smoke.plan_of(trial, home)
    done = night.run_night(plan, rebuild=smoke.needs_fetching(plan), measures=False)
    print(status.summarize_status(home, done))
    if trial.row.measures:
        print("The times are no measurements: sizes are small, and a smoke test does not wait for a quiet machine.")
    print("\n".join(_report_results(home, done, trial.code)))
    print(f"\nAll output is in {home.root}; when you are done: rm -r {home.root}")
    return choose_exit_code(done)


def _report_results(home: Home, done: Night, code: CodeFolders) -> Iterator[str]:
    """Yield the job's results: numbers, graphs and summary of an experiment; report and files of a subsystem."""
    from dashboard.night.publish import describe_own
    from dashboard.report import results, tables

    for experiment in results.read(home, done.stamp, code).experiments:
        if experiment.data:
            yield from tables.format_numbers(experiment.data)
            yield from ["", *describe_own(experiment.job.name, {}, experiment.data)]
        if experiment.summary:
            yield f"\n{experiment.summary}"
        yield from _list_files("Graphs", home.graph(experiment.job.name))
    for job in done.subsystems:
        report = home.read_report(job.name)
        yield "\n" + "\n".join(report) if report else "\nNo report."
        yield from _list_files("Output", home.output(job.name))


def _list_files(label: str, folder: Path) -> Iterator[str]:
    names = sorted(path.name for path in folder.glob("*") if path.is_file() and not path.name.startswith("."))
    if names:
        yield f"\n{label} in {folder}: {format_list(names, _NAMED)}"
