"""Routes and owners in a home's config: what is wrong is told with its place, and who is whose is found."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from tvmdash import common
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import Home
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.notify.config import Owner, RouteKind, Routing, parse_quiet_hours, read_routing
from tvmdash.notify.plan import find_level, find_owners, is_for, is_pinged_by
from tvmdash.verdict import Level

FOLDERS = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
EMAIL = {"kind": "email", "server": "smtp.example.org", "from": "tvm@example.org", "to": ["team@example.org"]}
HOOK = {"kind": "webhook", "url": "https://hooks.example.org/tvm", "secret_file": "~/.config/tvmdash/hook"}
ISSUES = {"kind": "github", "repository": "apache/tvm"}
SLACK = {"kind": "slack", "channel": "C0NIGHTLY01"}


def read(root: Path, routes: dict[str, Any], owners: Any = ()) -> Routing:
    path = Home(root).config_file
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, {**FOLDERS, "routes": routes, "owners": list(owners)})
    return read_routing(Home(root))


def moved(series: str, experiment: str, *, machine: str = "", workload: str = "", worse: bool | None = True) -> Moved:
    return Moved(
        f"id-{series}", series, "run_time", "ms", worse, 1.0, 1.1, 0.1,
        experiment=experiment, machine=machine, workload=workload,
    )  # fmt: skip


def incident(*series: Moved, **facts: Any) -> Incident:
    night = "20261121T031500Z"
    return Incident(
        "i1", facts.pop("kind", "change"), "new", night, night, night, ("a", "b"), "compiler", series, **facts
    )


def test_a_whole_config_is_read(tmp_path: Path) -> None:
    owners = [{"experiment": "cnn_*", "email": ["ada@example.org"], "routes": ["mail"]}]
    routing = read(tmp_path, {"mail": EMAIL, "hook": HOOK, "issues": ISSUES}, owners)
    assert [(route.name, route.kind) for route in routing.routes.values()] == [
        ("mail", RouteKind.EMAIL), ("hook", RouteKind.WEBHOOK), ("issues", RouteKind.GITHUB),
    ]  # fmt: skip
    assert (routing.routes["mail"].host, routing.routes["mail"].port) == ("smtp.example.org", 587)
    assert routing.owners[0].experiment == "cnn_*"
    assert read_routing(Home(tmp_path / "nowhere")) == Routing()


@pytest.mark.parametrize(
    ("route", "fault"),
    [
        ({"kind": "email"}, ".server: '' is not a mail server"),
        ({**EMAIL, "server": "smtp.example.org:99999"}, ".server: 'smtp.example.org:99999' is not a mail server"),
        ({**EMAIL, "to": ["a@b.org\nBcc: x@y.org"]}, r".to[0]: 'a@b.org\nBcc: x@y.org' is not an e-mail address"),
        ({**EMAIL, "from": "Dashboard"}, ".from: 'Dashboard' is not an e-mail address"),
        ({**EMAIL, "security": "none"}, ".security: `none` would send messages and password unencrypted"),
        ({**EMAIL, "user": "tvm"}, ".secret_file: required field is missing"),
        ({**EMAIL, "url": "https://x.org"}, ".url: not allowed for routes of kind email. Remove it."),
        ({**EMAIL, "adress": "x"}, ".adress: unknown field"),
        ({**EMAIL, "at_once": ["regresion"]}, ".at_once[0]: unknown level 'regresion'. Did you mean 'regression'?"),
        ({**EMAIL, "at_once": ["steady"]},
         ".at_once[0]: incidents are never steady, only nights are. Move it to digest."),
        ({**EMAIL, "at_once": ["improved"], "digest": ["improved"]}, ".digest: improved is also in at_once"),
        ({**EMAIL, "at_once": []}, ".at_once: neither at_once nor digest has a level"),
        ({**EMAIL, "quiet_hours": "22-7"}, ".quiet_hours: '22-7' is not a time range (use e.g. 22:00-07:00)."),
        (
            {**EMAIL, "quiet_hours": "22:00-07:00", "time_zone": "Mars/Base"},
            ".time_zone: unknown time zone 'Mars/Base'",
        ),
        ({**HOOK, "url": "http://hooks.example.org"}, ".url: must be an https:// URL"),
        (
            {"kind": "webhook", "url": HOOK["url"]},
            ".secret_file: required field is missing. Give the file with the signing key"),
        ({"kind": "github", "repository": "tvm"}, ".repository: 'tvm' is not of the form OWNER/NAME"),
        ({**ISSUES, "digest": ["changed"]}, ".digest: not allowed for routes of kind github"),
        ({"kind": "slack", "channel": "#general"}, ".channel: '#general' is not a channel ID"),
        ({"kind": "pager"}, ".kind: 'pager' is not a valid choice"),
        ([], ": [] is not an object"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_route_is_told_with_its_place(tmp_path: Path, route: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, {"r": route})
    assert f"config.json: $.routes.r{fault}" in str(raised.value)


@pytest.mark.parametrize(
    ("owner", "fault"),
    [
        ({}, ": no recipient. Give slack, email, github or routes."),
        ({"slack": ["@ada"]}, ".slack[0]: '@ada' is invalid (use e.g. U012ABCDEF)."),
        ({"email": ["ada"]}, ".email[0]: 'ada' is not an e-mail address."),
        ({"github": ["@ada"]}, ".github[0]: '@ada' is invalid (use e.g. octocat)."),
        ({"routes": ["mial"]}, ".routes[0]: unknown route 'mial'. Did you mean 'mail'?"),
        ({"hosts": "box", "email": ["ada@b.org"]}, ".hosts: unknown field. Did you mean 'host'?"),
        ({"series": 3, "email": ["ada@b.org"]}, ".series: 3 is not a string."),
    ],
)
def test_what_is_wrong_with_an_owner_is_told_with_its_place(tmp_path: Path, owner: Any, fault: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, {"mail": EMAIL}, [owner])
    assert f"config.json: $.owners[0]{fault}" in str(raised.value)


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, {"a b": EMAIL, "hook": {"kind": "webhook"}}, [{}, {"routes": ["x"]}])
    assert [fault.partition("$")[2].partition(":")[0] for fault in raised.value.faults] == [
        ".routes.a b", ".routes.hook.secret_file", ".owners[0]", ".owners[1].routes[0]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "is_owner"),
    [
        (Owner(), True),
        (Owner(series="*resnet18*"), True),
        (Owner(series="resnet18"), True),
        (Owner(series="id-cnn_comp~box cnn.resnet18*"), True),
        (Owner(series="resnet50"), False),
        (Owner(experiment="cnn_comp"), True),
        (Owner(experiment="cnn_comp~box"), True),
        (Owner(experiment="cnn"), False),
        (Owner(host="box"), True),
        (Owner(host="epyc-*"), True),
        (Owner(host="local"), False),
        (Owner(series="resnet18", experiment="rnn_*"), False),
    ],
)
def test_owners_are_found_by_globs_of_series_experiment_and_host(owner: Owner, is_owner: bool) -> None:
    series = moved("cnn_comp~box cnn.resnet18 run time", "cnn_comp~box@ours", machine="epyc-2", workload="resnet18")
    found = incident(series)
    assert bool(find_owners([owner], found)) == is_owner


def test_one_series_is_enough_and_all_globs_must_match_the_same_one() -> None:
    both = incident(moved("a", "rnn_comp"), moved("b", "cnn_comp~box"))
    assert find_owners([Owner(experiment="rnn_*")], both)
    assert not find_owners([Owner(experiment="rnn_*", host="box")], both)


def test_an_incident_of_a_whole_machine_belongs_to_who_owns_all_of_it() -> None:
    whole = incident(kind="machine", machine="epyc-2", size=0.04)
    assert find_owners([Owner(), Owner(host="epyc-?"), Owner(host="box"), Owner(series="a*")], whole) == [
        Owner(), Owner(host="epyc-?"),
    ]  # fmt: skip


def test_a_route_that_owners_name_tells_what_is_theirs_and_any_other_tells_everything(tmp_path: Path) -> None:
    routing = read(tmp_path, {"mail": EMAIL, "hook": HOOK}, [{"experiment": "cnn_*", "routes": ["hook"]}])
    cnn, rnn = incident(moved("a", "cnn_comp")), incident(moved("b", "rnn_comp"))
    told = {name: [is_for(route, routing.owners, it) for it in (cnn, rnn)] for name, route in routing.routes.items()}
    assert told == {"mail": [True, True], "hook": [True, False]}


def test_one_route_of_a_kind_pings_an_owner(tmp_path: Path) -> None:
    team = {**SLACK, "channel": "C0CNNTEAM01"}
    owners = [{"slack": ["U0123456789"]}, {"slack": ["U0223456789"], "routes": ["team"]}]
    routing = read(tmp_path, {"all": SLACK, "team": team}, owners)
    everyone, team_only = routing.owners

    def by(owner: Owner, *, main: bool) -> list[str]:
        return [name for name in ("", "all", "team") if is_pinged_by(owner, RouteKind.SLACK, name, routing, main=main)]

    assert (by(everyone, main=True), by(everyone, main=False)) == ([""], ["all"])
    assert (by(team_only, main=True), by(team_only, main=False)) == (["team"], ["team"])


def test_an_incident_has_the_level_that_a_night_with_it_has() -> None:
    worse, better, other = (incident(moved("a", "x", worse=way)) for way in (True, False, None))
    machine = incident(kind="machine", size=0.1)
    assert [find_level(it) for it in (worse, better, other)] == [Level.REGRESSION, Level.IMPROVED, Level.CHANGED]
    assert find_level(machine) == Level.REGRESSION, "everything on it, and nobody knows whose doing it is"
    blamed = Incident("i2", "machine", "new", *[machine.begin] * 3, ("a", "b"), "machine", size=0.1)
    assert find_level(blamed) == Level.CHANGED


@pytest.mark.parametrize(
    ("hours", "clock", "end"),
    [
        ("22:00-07:00", "21:59", None),
        ("22:00-07:00", "22:00", "2026-11-22T07:00"),
        ("22:00-07:00", "03:15", "2026-11-21T07:00"),
        ("22:00-07:00", "07:00", None),
        ("12:00-14:00", "13:00", "2026-11-21T14:00"),
        ("12:00-14:00", "14:00", None),
    ],
)
def test_quiet_hours_end_by_the_clocks_of_their_zone(hours: str, clock: str, end: str | None) -> None:
    quiet = parse_quiet_hours(hours, "Europe/Berlin")
    now = datetime.datetime.fromisoformat(f"2026-11-21T{clock}").replace(tzinfo=quiet.zone)
    found = quiet.find_end(now.astimezone(datetime.UTC))
    assert (found and found.strftime("%Y-%m-%dT%H:%M")) == end
