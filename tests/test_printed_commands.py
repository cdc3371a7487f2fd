"""Every command of the README and of the how-to pages does what it is printed for.

What the dashboard's own verbs do is run here, as printed, on a copy of one small home: words in capitals stand for
something of it. What builds TVM, needs a service, or ends only when somebody stops it is run by the test that ELSEWHERE
names, in tests/slow where it is costly; here its words are parsed. A command that is in neither fails.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.artifacts import artifact
from dashboard.cli import main as cli
from tests.dashboard import homes, remeasure_homes
from tests.dashboard.homes import HomeForTests
from tests.dashboard.remeasure_homes import NAME
from tvmdash.incidents import command as incidents

REPOSITORY = Path(__file__).resolve().parent.parent
HOW_TO = REPOSITORY / "docs" / "how-to"
WHOLE_PAGES = {
    "questions.md": "tests/tvmtraces/test_questions.py",
    "exchange.md": "tests/tvmdash/records/exchange/test_exchange_docs.py",
}
"""Pages whose every command another module runs, with what it prints."""
README = "tests/slow/test_readme.py::test_the_readmes_commands_as_printed"
SLOW, JOB = "tests/slow/", "tests/shell/test_dashboard_job.py::"
DASHBOARD = "python3 -m dashboard "
_PROGRAMS = re.compile(
    r"(\$ )?([A-Z_]+=\S+ )*"
    r"(python3|git|apt|docker|pip|pipx|mkdir|\(umask|tvmdash|\.venv/\S+|(\./|\S+/)?(run_dashboard|dashboard_job)\.sh|"
    r"tests/\S+\.sh|(\S+ ){5}\$HOME/\S+\.sh) ?.*"
)
_INLINE = re.compile(r"`([^`]+)`")
_OPTIONAL = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")


@dataclass(frozen=True)
class Command:
    """What is printed, on one line, and on which page."""

    page: str
    text: str


def list_commands(page: Path) -> Iterator[Command]:
    """The commands of a page: in its blocks, in the README's table, and within sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:bash|console)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    blocks += [
        re.sub(r"^ {4,}", "", block, flags=re.MULTILINE)
        for block in re.findall(r"(?:^ {4,}.*\n)+", prose, re.MULTILINE)
    ]
    for block in blocks:
        if block.startswith("#!"):
            continue  # a script to be written, which its own page's test runs
        for line in block.replace("\\\n", " ").splitlines():
            words = " ".join(line.split())
            if _PROGRAMS.fullmatch(words):
                yield Command(page.name, words.partition(" # ")[0])
    verbs = "|".join(map(re.escape, _verbs()))
    own = re.compile(rf"(?:{re.escape(DASHBOARD)})?(?:{verbs})(?: .+)? (?:HOME|BACKUP_DIR|NAME|RECEIPT)\b.*")
    for span in (" ".join(found.split()) for found in _INLINE.findall(prose)):
        if span.startswith(DASHBOARD) or own.fullmatch(span):
            yield Command(page.name, DASHBOARD + span.removeprefix(DASHBOARD))
        elif re.match(r"\S*(run_dashboard|dashboard_job)\.sh \S+", span):
            yield Command(page.name, span)


def _verbs() -> list[str]:
    return list(next(action.choices for action in cli._make_parser()._actions if action.choices))


PRINTED = sorted(
    {
        command
        for page in (REPOSITORY / "README.md", *sorted(HOW_TO.glob("*.md")))
        if page.name not in WHOLE_PAGES
        for command in list_commands(page)
    },
    key=lambda command: (command.page, command.text),
)


_BISECT = f"{DASHBOARD}bisect HOME EXPERIMENT SERIES --good A --bad B"
_DEVICES = "tests/dashboard/plan/test_devices.py::test_one_command_adds_a_device_to_the_home_and_to_what_runs_on_it"
SUBMIT = "tests/dashboard/cli/test_submit.py::test_a_submission_is_imported_once_however_often_it_comes"
ELSEWHERE: dict[str, str] = {
    # these build TVM, run real nights or need a network or a service: tests/run.sh --slow
    "git clone REMOTE dashboard && cd dashboard": README,
    "./run_dashboard.sh --quick ~/quick-home": README,
    "./run_dashboard.sh --demo ~/demo": "tests/test_demo.py::",
    "./run_dashboard.sh --command serve ~/demo": "tests/dashboard/report/test_site_server.py::"
    "test_the_command_says_its_address_and_ends_with_ctrl_c",
    "mkdir -p ~/home && cp -r sample-dashboard-home/config ~/home/": README,
    "./run_dashboard.sh sample-dashboard-home": README,
    "tests/python.sh -m sphinx docs site": README,
    "python3 -m venv ~/venv && ~/venv/bin/pip install .": f"{SLOW}test_package.py::installed",
    'tvmdash traces query "SELECT name, total_calls FROM top_kernels" raw/': (
        f"{SLOW}test_package.py::test_the_librarys_command_exports_records"
    ),
    ".venv/KEY/bin/python -m pip install --no-deps --require-hashes -r requirements-s3-hashes.txt": README,
    "pip download --no-deps --only-binary :all: -r requirements.txt -d wheels": README,
    "PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels ./run_dashboard.sh HOME --no-rebuild-tvm": README,
    f"{DASHBOARD}try HOME git:REVISION": f"{SLOW}test_real_tvm.py::"
    "test_two_commits_are_built_and_an_experiment_runs_on_both",
    # these end only when they are stopped, change the machine, or need a service that a test stands in for
    f"{DASHBOARD}serve HOME --token-file FILE": SUBMIT,
    f"{DASHBOARD}serve HOME --triage [HEADER]": "tests/browser/test_triage.py::"
    "test_an_incident_is_acknowledged_in_its_page",
    f"{DASHBOARD}submit https://bench.example.org night.json --token-file FILE": SUBMIT,
    f"{DASHBOARD}serve HOME": "tests/dashboard/report/test_site_server.py::"
    "test_the_command_says_its_address_and_ends_with_ctrl_c",
    f"{DASHBOARD}serve HOME [--port PORT] [--bind ADDRESS] [--name NAME]": "tests/dashboard/report/test_site_server.py"
    "::test_the_command_says_its_address_and_ends_with_ctrl_c",
    f"{DASHBOARD}devices HOME --add opencl": _DEVICES,
    f"{DASHBOARD}devices sample-dashboard-home --add opencl": _DEVICES,
    f"{DASHBOARD}devices HOME --add cuda": _DEVICES,
    f"{DASHBOARD}routes HOME --send": "tests/tvmdash/notify/test_webhook.py::test_what_waits_is_sent_by_hand",
    f"{DASHBOARD}routes HOME --test": "tests/tvmdash/notify/test_webhook.py::test_the_command_line_shows_and_tests",
    f"{DASHBOARD}work": "tests/dashboard/hosts/test_hosts_night.py::",
    f"{DASHBOARD}notify HOME --check": "tests/tvmdash/notify/test_slack.py::"
    "test_the_check_sends_one_test_for_each_channel_and_names_lacking_scopes",
    f"{DASHBOARD}try-request HOME --asked-by LOGIN --pull NUMBER": "tests/github/test_workflow.py::"
    "test_who_is_not_on_the_list_is_refused_before_anything_is_done",
    f"{DASHBOARD}try-comment HOME --begun --pull NUMBER": "tests/github/test_answer.py::"
    "test_the_first_answer_is_a_comment_and_the_second_takes_its_place",
    f"{DASHBOARD}try-comment HOME RESULT --pull NUMBER": "tests/github/test_workflow.py::"
    "test_a_comment_gets_one_answer_that_is_edited_by_the_next_and_shows_no_token",
    f"{DASHBOARD}new experiment NAME": "tests/dashboard/authoring/test_new.py::"
    "test_what_it_writes_passes_check_and_its_own_test",
    f"{DASHBOARD}new experiment NAME --bash": "tests/dashboard/authoring/test_new.py::"
    "test_what_it_writes_passes_check_and_its_own_test",
    f"{DASHBOARD}new subsystem NAME": "tests/dashboard/authoring/test_new.py::"
    "test_what_it_writes_passes_check_and_its_own_test",
    "./dashboard_job.sh --settings ~/nightly.conf": f"{JOB}test_a_settings_file_is_read_and_nothing_in_it_is_executed",
    '0 3 * * * $HOME/nightly/source/dashboard_job.sh --settings $HOME/nightly.conf || echo "dashboard: exit code $?"': (
        f"{JOB}test_a_settings_file_is_read_and_nothing_in_it_is_executed"
    ),
    "*/10 * * * * $HOME/dashboard/run_dashboard.sh --command tries /data/home work >> $HOME/tries.log 2>&1": (
        "tests/shell/test_run_dashboard.py::test_another_command_runs_in_the_same_environment"
    ),
    "run_dashboard.sh --command VERB": "tests/shell/test_run_dashboard.py::"
    "test_another_command_runs_in_the_same_environment",
    "run_dashboard.sh HOME --no-rebuild-tvm": "tests/shell/test_run_dashboard.py::"
    "test_the_first_start_under_cron_makes_the_environment_and_runs_the_night",
    "nightly/source/run_dashboard.sh --command install /data/home --settings ~/nightly.conf --at 03:00": (
        "tests/dashboard/schedule/test_install.py::test_cron_gets_lines_that_its_shell_reads_as_the_home"
    ),
    # these are the tests themselves
    "tests/run.sh": ".ci/run::",
}
"""By command the test (FILE::NAME, or FILE:: where it is the whole of it) that runs it."""
OF_THE_SYSTEM = re.compile(r"(apt install|docker (build|run)|mkdir -p ~/\.config/tvmdash$|\(umask 077; ).*")
"""Not run by any test: they change the machine, need a daemon, or somebody who types; none is the dashboard's."""
CODES = {"doctor": {0, 1}, "signoff": {0, 4, 5}, "try": {0, 4}, "watch": {0, 1}, "bisect": {0, 1}}
"""Exit codes of verbs that say something of the home by them."""
BEFORE = {
    f'{DASHBOARD}incidents HOME unsilence "*resnet*"': f"{DASHBOARD}incidents HOME silence '*resnet*' because",
    f"{DASHBOARD}incidents HOME bisected ID FILE": _BISECT,
    f"{DASHBOARD}incidents HOME bisected i20260704-1389 results/tries/FILE.json": _BISECT,
}
"""What somebody must have done before the command means anything."""
OFFLINE = {"backfill", "bisect", "compare", "reproduce", "run", "try"}
"""Verbs that would ask the package index; here they are told not to."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> HomeForTests:
    """A home with 40 nights on TVM 0.26.0, one on 0.27.0, which is slower, with an incident, and two waiting tries."""
    lab = remeasure_homes.make_lab_for_tries(tmp_path_factory.mktemp("printed") / "lab")
    home = lab.home
    homes.write(home.experiment("good", config={"active": False}) / "fields.json", {"needs_tvm": False})
    home.configure(experiment_dirs=["../code/experiments"], schedule="0 0 1 1 *", tvm_branch="0.27.0", reference="none")
    for name in ("stat_alerts", "website"):
        homes.write(home.home.config("subsystem", name) / "config.json", {"active": True})
    remeasure_homes.past(lab, 40, artifact.read_artifact(home.root / "shelf" / lab.state["old"]))
    for words in (["run"], ["try", "--against", "pypi:0.26.0", "--queue"]):
        verb, *options = words
        more = ["pypi:0.27.0"] if verb == "try" else []
        done = homes.call(verb, str(home.path), *more, *options, "--no-rebuild-tvm")
        assert done.code == 0, done.output
    homes.script(home.root / "key", "whsec_" + "c2VjcmV0" * 4)
    (home.root / "key").chmod(0o600)
    pager = {"kind": "webhook", "url": "https://pager.example.org/tvm", "secret_file": "../key"}
    home.configure(routes={"pager": pager})
    homes.write(home.home.config("subsystem", "routes") / "config.json", {"active": True})
    return home


@pytest.fixture
def home(prepared: HomeForTests, tmp_path: Path) -> HomeForTests:
    """The same in a folder of its own."""
    shutil.copytree(prepared.root, tmp_path / "lab", symlinks=True)
    return HomeForTests(tmp_path / "lab")


def _fill(text: str, home: HomeForTests) -> list[str]:
    """The words of the command, with what those in capitals stand for."""
    (incident,) = list(incidents.ledger_of(home.path).incidents)[:1]
    (waiting,) = [path.stem for path in home.home.tries.glob("*.json")] or [""]
    made = list((home.path / "results" / "tries").glob("*.json"))
    old, new = sorted(path.name for path in (home.root / "shelf").glob("wheel-*"))
    stamp = home.stamps()[-1]
    verb = text.split()[3]
    stands_for = {
        "HOME": home.path, "sample-dashboard-home": home.path, "BACKUP_DIR": home.root / "backup",
        "TARGET": home.root / "new", "/new/home": home.path if verb == "publish" else home.root / "new",
        "NAME": f"{home.code}/experiments/good" if verb == "smoke" else NAME,
        "EXPERIMENT": NAME, "SERIES": "mlp", "OLD": NAME,
        "NEW": "pace", "WHY": "because", "A": old, "B": new, "BASE": "pypi:0.26.0",
        "CANDIDATE": "pypi:0.27.0", "RANGE": "pypi:0.26.0..0.27.0", "RECEIPT": f"{NAME}/{stamp}",
        "NIGHT": stamp, "STAMP-before": f"{stamp}-before", "ID": waiting if verb == "tries" else incident,
        "i20260704-1389": incident, "i20260704": incident[:9], "FILE": made[0] if made else "", "VERB": "--help",
        "N": "2", "WHO": "ann", "WORDS": "because", "SELECT ...": "SELECT count(*) FROM nights",
        "results/tries/FILE.json": made[0] if made else "",
    }  # fmt: skip
    words = shlex.split(text.removeprefix(DASHBOARD).replace(" ...", "") if "SELECT ..." not in text else text)
    words = words[3:] if words[:2] == ["python3", "-m"] else words
    return [str(stands_for.get(word, word)) for word in words]


def _drop_options(text: str) -> str:
    """The command without what stands in brackets."""
    return " ".join(_OPTIONAL.sub("", text).split())


OWN = [command.text for command in PRINTED if command.text.startswith(DASHBOARD) and command.text not in ELSEWHERE]
RUN_HERE = sorted({_drop_options(text) for text in OWN})
OPTIONS = sorted({(_drop_options(text), option) for text in OWN for option in _OPTIONAL.findall(text)})


def test_pages_are_read() -> None:
    assert len(PRINTED) > 100
    assert {"README.md", "incidents.md", "try.md"} <= {command.page for command in PRINTED}


def test_every_printed_command_is_run_by_a_test() -> None:
    texts = {command.text for command in PRINTED}
    lost = [text for text in texts - set(OWN) - set(ELSEWHERE) if not OF_THE_SYSTEM.fullmatch(text)]
    assert not lost, "run them here, or name in ELSEWHERE the test that does"
    assert not set(ELSEWHERE) - texts, "these are printed no more"


@pytest.mark.parametrize("place", sorted({*ELSEWHERE.values(), *(f"{file}::" for file in WHOLE_PAGES.values())}))
def test_what_runs_a_command_elsewhere_is_there(place: str) -> None:
    file, _, name = place.partition("::")
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    assert f"def {name}" in text if name else text


@pytest.mark.parametrize("text", RUN_HERE)
def test_a_printed_command_does_what_it_is_printed_for(text: str, home: HomeForTests) -> None:
    for command in filter(None, (BEFORE.get(text), text)):
        words = _fill(command, home)
        offline = ["--no-rebuild-tvm"] if words[0] in OFFLINE else []
        done = homes.call(*words, *offline)
        assert done.code in CODES.get(words[0], {0}), done.output


@pytest.mark.parametrize(("text", "option"), OPTIONS)
def test_what_stands_in_brackets_is_an_option_of_the_command(text: str, option: str, prepared: HomeForTests) -> None:
    words = _fill(f"{text} {option.replace('[', '').replace(']', '')}", prepared)
    if words[0] == "incidents":  # reads its arguments by a parser of its own
        incidents._make_parser().parse_args([str(prepared.path), *words[2:]])
    else:
        cli._make_parser().parse_args(words)
