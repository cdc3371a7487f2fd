"""What a candidate that is not the home's own can see and do while it is tried: its code really tries."""

from __future__ import annotations

import ctypes
import json
import platform
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import (
    LAST_USED,
    Artifact,
    ArtifactError,
    ArtifactSpec,
    library_sizes,
    python_tag,
    write_manifest,
)
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import cmake, git_provider, names
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.process import orphans, sandbox
from dashboard.process.sandbox import Guest
from tests.dashboard import homes, standin
from tests.dashboard.homes import HomeForTests

SECRET = "hunter2hunter2"
STEAL = f"""#!/usr/bin/env python3
import json, os, pathlib, socket, sys

def attempt(what):
    try:
        return what()
    except Exception as error:
        return type(error).__name__

site = pathlib.Path(os.environ["PYTHONPATH"].split(":")[-1])
home = os.environ["TVMDASH_HOME"]
operator, port = json.loads((site / "libtvm.so").read_text())
loot = {{
    "environment": "{SECRET}" in str(os.environ),
    "kept": os.environ.get("OMP_NUM_THREADS"),
    "parents": "{SECRET}" in str([attempt(p.read_bytes) for p in pathlib.Path("/proc").glob("[0-9]*/environ")]),
    "key": attempt(lambda: pathlib.Path(operator, ".ssh/id_x").read_text()),
    "config": attempt(lambda: pathlib.Path(home, "config/config.json").read_text()[:0]),
    "network": attempt(lambda: socket.create_connection(("127.0.0.1", port), 5).close()),
    "written": [attempt(lambda: open(os.path.join(place, "written"), "w").close()) for place in (operator, home, site)],
}}
message = json.dumps(loot)
pathlib.Path(sys.argv[2], "status.json").write_text(json.dumps({{"success": False, "message": message}}))
"""
BESIDE = {"beside_reference": "runs", "metrics": {"*": {"kind": "time", "unit": "ms", "direction": "lower"}}}


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


@dataclass(frozen=True)
class Den:
    """A home with secrets around it, the commits of its branch and of a pull request, and a server."""

    home: HomeForTests
    operator: Path
    own: str
    pull: str

    def try_pull(self, name: str = "git:pull/7") -> tuple[homes.Finished, dict[str, Any]]:
        """A try of it, and what its stage got hold of."""
        secrets = {
            "HOME": str(self.operator),
            "GITHUB_TOKEN": f"ghs_{SECRET}",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "PIP_INDEX_URL": f"https://me:{SECRET}@index.example.org/simple",
            "https_proxy": f"http://me:{SECRET}@proxy.example.org",
        }
        done = self.home.run_with(secrets, name, "--against", f"git:{self.own}", "--no-rebuild-tvm", verb="try")
        (path,) = (self.home.path / "results" / "tries").glob("*.json")
        error = homes.read(path)["errors"]["steal"]
        path.unlink()
        found = re.search(r"\{.*\}", error)
        assert found, error
        return done, json.loads(found[0])


@pytest.fixture
def adopting() -> Iterator[None]:
    """This process adopts orphans, as what builds does; else they are somebody's who looks at them now and then."""
    orphans.become_subreaper()
    yield
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


@pytest.fixture
def den(tmp_path: Path) -> Iterator[Den]:
    remote, operator = tmp_path / "remote", tmp_path / "operator"
    for folder in (remote, operator / ".ssh"):
        folder.mkdir(parents=True)
    (operator / ".ssh" / "id_x").write_text(SECRET)
    standin.git(remote, "init", "--quiet")
    commits = []
    for day, title in ((1, "Main"), (2, "Proposed")):
        standin.git(remote, "commit", "--quiet", "--allow-empty", "-m", title, day=day)
        commits.append(standin.git(remote, "rev-parse", "HEAD"))
    standin.git(remote, "update-ref", "refs/pull/7/head", commits[1])
    standin.git(remote, "reset", "--quiet", "--hard", commits[0])
    home = homes.make_home(
        tmp_path / "lab", Path("../shelf"), telemetry_rate=0, tvm_remote=str(remote), tvm_branch="main",
        env={"OMP_NUM_THREADS": "1", "HF_TOKEN": SECRET},
    )  # fmt: skip
    folder = home.experiment("steal", run=STEAL, config={"pairs": 1})
    homes.write(folder / "fields.json", BESIDE)
    logs = tmp_path / "logs"
    logs.mkdir()
    for revision in ("pull/7", "main"):  # the mirror: these tries leave the network alone
        context = BuildContext(tmp_path / "lab" / "shelf", logs, LockDeadline(60))
        git_provider.resolve(ArtifactSpec(str(remote), revision), context)
    with socket.create_server(("127.0.0.1", 0)) as server:
        for day, commit in enumerate(commits, start=1):
            loot = json.dumps([str(operator), server.getsockname()[1]])
            put_build(tmp_path / "lab" / "shelf", str(remote), commit, loot, day=day)
        yield Den(home, operator, *commits)


def put_build(shelf: Path, remote: str, commit: str, content: str, *, day: int) -> None:
    """An artifact that counts as a build of that commit of that day of August; its library holds `content`."""
    folder = shelf / f"git-{commit[:12]}"
    site = folder / "site"
    site.mkdir(parents=True)
    (site / "libtvm.so").write_text(content)
    facts = {"remote": remote, "options": "{}", "python": python_tag(), "machine": platform.machine(), "tvm_ffi": "1"}
    facts |= {"committed_utc": f"202608{day:02d}T120000Z"}
    sizes = library_sizes(folder, (site,))
    write_manifest(Artifact(folder.name, "git", "0.1", commit, folder, (site,), (site,), facts, {}, sizes))
    (folder / LAST_USED).touch()


def need_bubblewrap() -> None:
    if obstacle := sandbox.find_obstacle():
        pytest.skip(obstacle)


def test_a_pull_request_that_is_tried_gets_hold_of_nothing(den: Den) -> None:
    need_bubblewrap()
    done, loot = den.try_pull()
    assert done.code == 1
    assert SECRET not in done.output
    gone = "FileNotFoundError"
    assert loot == {
        "environment": False,
        "kept": "1",
        "parents": False,
        "key": gone,
        "config": gone,
        "network": "ConnectionRefusedError",
        "written": [gone, gone, "OSError"],
    }
    assert not list(den.home.root.parent.rglob("written"))


def test_a_commit_of_the_homes_own_branch_is_run_as_a_night_runs_it(den: Den) -> None:
    _, loot = den.try_pull(f"git:{den.own}")
    assert loot["environment"], "the secrets that the operator gives to nights"
    assert loot["network"] is None


def test_without_a_sandbox_its_environment_is_its_own_all_the_same(den: Den) -> None:
    den.home.configure(isolate_candidates="never")
    _, loot = den.try_pull()
    assert (loot["environment"], loot["kept"]) == (False, "1")
    assert loot["key"] == SECRET, "what docs/how-to/pull-requests.md says is not protected then"


@pytest.mark.parametrize("config", [{"isolate_candidates": "require"}, {"github_may_ask": ["ada"]}])
def test_where_it_must_be_isolated_and_cannot_be_only_the_homes_own_is_measured(
    den: Den, tmp_path: Path, config: dict[str, Any]
) -> None:
    den.home.configure(**config)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to("/usr/bin/git")
    words, poor = ("--against", f"git:{den.own}", "--no-rebuild-tvm"), {"PATH": str(tmp_path / "bin")}
    own = den.home.run_with(poor, f"git:{den.own}", *words, verb="try")
    assert own.code == 1, own.output
    assert "All values" in own.output
    (den.home.path / "results" / "tries" / own.output.split()[-1].rpartition("/")[2]).unlink()
    done = den.home.run_with(poor, "git:pull/7", *words, verb="try")
    assert done.code == 2, done.output
    assert "bubblewrap is not" in done.output
    assert not list((den.home.path / "results" / "tries").glob("*.json"))


def test_a_setup_which_nights_take_is_run_with_the_homes_own_tvm_or_not_at_all(den: Den) -> None:
    log = den.home.root / "setups"
    setup = homes.good("setup", f'echo "$TVMDASH_ARTIFACT" >> {log}')
    den.home.experiment("steal", run=STEAL, setup=setup, config={"pairs": 1})
    guests = den.home.run("git:pull/7", "--against", f"git:{den.pull}", "--no-rebuild-tvm", verb="try")
    assert "nights reuse its setup" in guests.output
    assert not log.exists()
    for path in (den.home.path / "results" / "tries").glob("*.json"):
        path.unlink()
    den.try_pull()
    assert log.read_text().split() == [f"git-{den.own[:12]}"]


@pytest.mark.usefixtures("adopting")
def test_where_the_candidate_says_from_where_to_fetch_nobody_hears_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    heard = [listen_to_fetch(tmp_path / f"{at}", guest) for at, guest in enumerate((None, Guest(is_sealed=False)))]
    assert [b"Authorization: Basic" in text for text in heard] == [True, False]
    assert heard[1].startswith(b"GET /it/info/refs")


@pytest.mark.usefixtures("adopting")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "me@127.0.0.1"]
)
def test_a_submodule_that_a_guest_names_is_not_asked_for_on_this_machine(tmp_path: Path, host: str) -> None:
    assert b"GET" not in listen_to_fetch(tmp_path, Guest(is_sealed=False), named_by="https://host/tvm", host=host)


@pytest.mark.usefixtures("adopting")
def test_a_guests_submodule_beside_its_remote_is_fetched_from_where_the_operator_has_it(tmp_path: Path) -> None:
    assert b"GET /it/info/refs" in listen_to_fetch(tmp_path, Guest(is_sealed=False), named_by="http://{host}/tvm")


@pytest.mark.usefixtures("adopting")
def test_a_server_that_a_guest_names_sends_git_to_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_is_public", lambda _: True)
    heard = listen_to_fetch(tmp_path, Guest(is_sealed=False), named_by="https://host/tvm", code=302)
    assert b"GET /it/info/refs" in heard, "that one itself is asked"
    assert b"GET /elsewhere" not in heard


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data", "http://10.0.0.7/x", "https://192.168.1.1/x", "https://[fe80::1]/x",
        "http://[::1]:8080/x", "http://[64:ff9b::7f00:1]/x", "http://[fd00::1]/x", "http://a.example\\@127.0.0.1/x",
        "git://example.org/x", "ssh://git@example.org/x", "git@example.org:x", "file:///srv/private", "/srv/private",
    ],
)  # fmt: skip
def test_a_guests_commit_names_no_address_of_this_network_and_no_path(url: str) -> None:
    for origin in ("https://example.org/tvm", "/home/me/tvm"):
        with pytest.raises(ArtifactError):
            names.find_public_addresses(url, origin)


def test_a_host_that_a_guest_names_is_asked_where_it_was_looked_up() -> None:
    assert names.find_public_addresses("https://1.1.1.1/x", "/home/me/tvm") == ("1.1.1.1:443:1.1.1.1",)
    assert names.find_public_addresses("/home/me/tvm-ffi", "/home/me/tvm") == ()


def listen_to_fetch(
    folder: Path, guest: Guest | None, *, named_by: str = "", host: str = "127.0.0.1", code: int = 401
) -> bytes:
    """What a server on this machine hears that a mirror is fetched from, and that asks for a password or redirects."""
    heard = bytearray()

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.extend(f"GET {self.path}\n{self.headers}".encode())
            self.send_response(code)
            self.send_header("Location", "/elsewhere/info/refs?service=git-upload-pack")
            self.send_header("WWW-Authenticate", 'Basic realm="it"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    (folder / "logs").mkdir(parents=True)
    with HTTPServer(("127.0.0.1", 0), Refuse) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        place = f"127.0.0.1:{server.server_port}"
        url = f"http://{host}:{server.server_port}/it"
        mirror = Mirror.of(folder, url, named_by=named_by.format(host=place))
        with pytest.raises(ArtifactError):
            mirror.fetch(BuildContext(folder, folder / "logs", LockDeadline(60), guest))
        server.shutdown()
        thread.join()
    return bytes(heard)


def make_build(tmp_path: Path, guest: Guest | None) -> cmake.CmakeBuild:
    """A build whose sources lie in tmp_path/place/source."""
    for folder in ("place/source", "shelf", "logs", "tools"):
        (tmp_path / folder).mkdir(parents=True)
    context = BuildContext(tmp_path / "shelf", tmp_path / "logs", LockDeadline(60), guest)
    tools = cmake.Toolchain("/usr/bin/c++", "", "", "", "")
    return cmake.CmakeBuild(tmp_path / "place" / "source", context, tmp_path / "tools", tools)


@pytest.mark.usefixtures("adopting")
def test_a_build_of_others_reads_no_secret_and_writes_to_its_sources_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_bubblewrap()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    (tmp_path / "id_x").write_text(SECRET)
    script = f"""env; cat ~/id_x {tmp_path}/id_x; cat {tmp_path}/shelf/other
touch made {tmp_path}/escaped {tmp_path}/shelf/escaped {tmp_path}/place/escaped "$CCACHE_DIR/escaped"
ln -s {tmp_path} build; exit 0"""
    build = make_build(tmp_path, Guest(is_sealed=True))
    (tmp_path / "shelf" / "other").write_text(SECRET)
    build.run("steal", ["sh", "-c", script])
    assert SECRET not in (tmp_path / "logs" / "build-steal.log").read_text()
    assert sorted(path.name for path in build.tree.iterdir()) == ["made"], "the link that leads out is gone"
    assert not list(tmp_path.rglob("escaped"))


def test_what_a_build_leaves_is_not_followed_out_of_its_sources(tmp_path: Path) -> None:
    build, outside = make_build(tmp_path, None), tmp_path / "outside"
    outside.mkdir()
    (outside / "_version.py").write_text("mine")
    package = build.tree / "python" / "tvm"
    package.mkdir(parents=True)
    (package / "_version.py").symlink_to(outside / "_version.py")
    (build.tree / "build").symlink_to(outside)
    with pytest.raises(ArtifactError, match="outside the source tree"):
        git_provider._install(build, tmp_path / "place", "0.1", "0" * 40)
    assert (outside / "_version.py").read_text() == "mine"
