"""The commands of the README and of installing, as printed: from a fresh clone, with an empty HOME and nothing else.

They fetch packages and TVM, run real nights and take a quarter of an hour.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
NETWORK = ("PIP_", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy")
"""What a machine may need to reach a package index."""


class Terminal:
    """A terminal of somebody whose HOME is empty; `cd` is remembered."""

    def __init__(self, home: Path) -> None:
        self.folder, self.python = home, Path(os.path.realpath("/proc/self/exe")).parent
        passed = {name: value for name, value in os.environ.items() if name.startswith(NETWORK)}
        self._environment = {"HOME": str(home), "PATH": f"{self.python}:{PATH}", **passed}

    def start(self, command: str) -> subprocess.Popen[str]:
        words = ["bash", "-euc", f"{command}\n"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(
            words, cwd=self.folder, env=self._environment, text=True, start_new_session=True, **pipes
        )  # type: ignore[call-overload, no-any-return]

    def run(self, command: str) -> str:
        """What it prints; it must go well."""
        process = self.start(command)
        output, _ = process.communicate()
        assert process.returncode == 0, f"{command}\n{output}"
        return str(output)


@contextlib.contextmanager
def _running(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=300)  # closes the pipe too


def printed(command: str) -> str:
    """The command, which stands in the README."""
    assert command in README
    return command


def test_the_readmes_commands_as_printed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    here = Terminal(home)
    here.run(printed("git clone REMOTE dashboard").replace("REMOTE", str(REPOSITORY)))
    here.folder = home / "dashboard"
    here.run("git checkout --quiet " + subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip())
    said = here.run(printed("./run_dashboard.sh --quick ~/quick-home"))
    assert "3 of 3 experiments and 3 of 3 subsystems ok" in said
    assert (home / "quick-home/results/subsystem/output/website/index.html").is_file()
    assert "4 mails" in here.run(printed("./run_dashboard.sh --demo ~/demo"))
    serving = here.start(printed("./run_dashboard.sh --command serve ~/demo"))
    with _running(serving):
        assert serving.stdout is not None
        address = next(found[0] for line in serving.stdout if (found := re.search(r"http://\S+", line)))
        assert "<title>" in here.run(f"python3 -c \"import urllib.request as r; print(r.urlopen('{address}').read())\"")
    (key,) = [path.parent.name for path in (here.folder / ".venv").glob("*/.complete")]
    s3 = ".venv/KEY/bin/python -m pip install --no-deps --require-hashes -r requirements-s3-hashes.txt"
    here.run(s3.replace("KEY", key))
    here.run(
        f"PATH=$PWD/.venv/{key}/bin:$PATH; pip download --no-deps --only-binary :all: -r requirements.txt -d wheels"
    )
    offline = "PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/to/wheels ./run_dashboard.sh HOME --no-rebuild-tvm"
    here.run(offline.replace("/path/to/wheels", "$PWD/wheels").replace("HOME", "~/quick-home"))
    here.run(printed("mkdir -p ~/home && cp -r sample-dashboard-home/config ~/home/"))
    assert (home / "home/config/config.json").is_file()
    here.run(printed("tests/python.sh -m sphinx docs site"))
    assert (here.folder / "site/index.html").is_file()
    assert "experiments" in here.run(printed("./run_dashboard.sh sample-dashboard-home"))
