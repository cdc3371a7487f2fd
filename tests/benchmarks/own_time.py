"""The dashboard's own time per stage, beyond starting the bare script: 20 no-op experiments and two subsystems.

`python tests/benchmarks/own_time.py ARTIFACTS [NIGHTS]` prints, for each night, the seconds of the whole night, of the
same scripts started bare one after the other, and the difference by stage. ARTIFACTS is a folder with a proven TVM,
such as .test-cache/artifacts. `--profile` runs the last night under cProfile.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO), str(REPO / "shared" / "python"), str(REPO / "tests" / "dashboard")]
os.environ.setdefault("TVMDASH_NODE", socket.gethostname())
from tests.dashboard import homes  # noqa: E402 - from the tests' folder

EXPERIMENTS, SUBSYSTEMS = 20, 2


def fill(home: homes.HomeForTests) -> int:
    """Add the no-op jobs; how many stages they have."""
    for index in range(EXPERIMENTS):
        home.experiment(f"e{index:02}")
    for index in range(SUBSYSTEMS):
        home.subsystem(f"s{index}")
    return EXPERIMENTS * len(homes.STAGES) + SUBSYSTEMS


def bare_s(home: homes.HomeForTests) -> float:
    """Seconds for the same scripts, started one after the other without any dashboard."""
    scratch = home.root / "bare"
    scratch.mkdir(exist_ok=True)
    env = {**os.environ, "TVMDASH_NIGHT": "x", "TVMDASH_JOB": "x"}
    begun = time.monotonic()
    for script in sorted(home.code.rglob("*.sh")):
        subprocess.run([script, scratch, scratch, scratch], env=env, check=False, capture_output=True)
    return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifacts", type=Path)
    parser.add_argument("nights", type=int, nargs="?", default=3)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = homes.make_home(Path(folder), arguments.artifacts.absolute())
        stages = fill(home)
        bare = bare_s(home)
        print(f"{stages} stages; bare scripts: {bare:.2f} s, {1000 * bare / stages:.1f} ms each")
        for _ in range(arguments.nights):
            done = home.run()
            assert done.code == 0, done.output
            night_s = home.last()["elapsed_s"]
            own = done.seconds - bare
            print(
                f"night {night_s:.2f} s ({done.seconds:.2f} s with starting Python and tidying up): "
                f"own time {own:.2f} s, {1000 * own / stages:.1f} ms a stage"
            )
        if arguments.profile:
            argv = home.command("run", "--no-rebuild-tvm")
            argv[1:3] = ["-m", "cProfile", "-s", "tottime", "-m", "dashboard"]
            subprocess.run(argv, env=homes.environment(), cwd="/", check=False)


if __name__ == "__main__":
    main()
