"""What many hosts cost the machine of the home: nights on 1 to 12 nodes of a real Slurm, 5 experiments of no work each.

`python tests/benchmarks/hosts_slurm.py [NODES...]`. All nodes are on this machine, where their workers compete for its
cores: so wall times are this machine's, and what tells of the coordinator is its CPU. That is the night's process and
all that it started and waited for (srun, scancel, the stages at home), not the workers, which Slurm's daemons start.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO), str(REPO / "shared" / "python")]
os.environ.setdefault("SLURMD_NODENAME", f"benchmark-{os.getpid()}")  # nobody else measures on it
from tests.dashboard import homes  # noqa: E402 - from the tests' folder
from tests.slow import slurm_cluster  # noqa: E402
from tests.slow.slurm_cluster import Cluster  # noqa: E402

EXPERIMENTS = 5
HEADER = (
    "| nodes | night | coordinator's CPU s | wall s | longest host s | beyond it s |\n|---:|---:|---:|---:|---:|---:|"
)


@dataclass(frozen=True)
class Cost:
    """One night: the coordinator's CPU, its whole time, and until the slowest host had measured."""

    cpu_s: float
    wall_s: float
    longest_s: float

    def __str__(self) -> str:
        return f"{self.cpu_s:.2f} | {self.wall_s:.1f} | {self.longest_s:.1f} | {self.wall_s - self.longest_s:.1f}"


def run_night(home: homes.HomeForTests, env: dict[str, str], options: Sequence[str]) -> Cost:
    """What a night costs; all of it must go well."""
    argv = home.command("run", "--no-rebuild-tvm")
    argv[1:1] = options
    process = subprocess.Popen(
        argv, env={**homes.environment(), **env}, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    night = home.last()
    assert os.waitstatus_to_exitcode(status) == 0, night
    return Cost(used.ru_utime + used.ru_stime, night["elapsed_s"], max(host["elapsed_s"] for host in night["hosts"]))


def measure(root: Path, cluster: Cluster, nodes: int, nights: int, options: Sequence[str]) -> list[Cost]:
    """Each of so many nights of a new home; the first one sends the dashboard's code to every host."""
    names = [f"n{number + 1}" for number in range(nodes)]
    home = homes.make_home(root, root / "artifacts")
    for number in range(EXPERIMENTS):
        folder = home.experiment(f"e{number}", config={"hosts": names})
        homes.write(folder / "fields.json", {"needs_tvm": False})
    env = slurm_cluster.add_nodes(home, cluster, *names)
    costs = [run_night(home, env, options) for _ in range(nights)]
    cluster.wait_until_idle()
    return costs


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nodes", type=int, nargs="*", default=[1, 3, 6, 12])
    parser.add_argument("--nights", type=int, default=2)
    parser.add_argument("--profile", type=Path, help="where the last night's profile goes")
    arguments = parser.parse_args()
    if missing := slurm_cluster.find_missing():
        sys.exit(f"There is no Slurm here: {', '.join(missing)} missing (Debian: apt install slurm-wlm munge).")
    options = ["-m", "cProfile", "-o", str(arguments.profile)] if arguments.profile else []
    with (
        tempfile.TemporaryDirectory() as folder,
        slurm_cluster.started(Path(folder, "slurm"), max(arguments.nodes)) as cluster,
    ):
        print(HEADER)
        for nodes in arguments.nodes:
            costs = measure(Path(folder, f"on-{nodes}"), cluster, nodes, arguments.nights, options)
            for number, cost in enumerate(costs, 1):
                print(f"| {nodes} | {number} | {cost} |", flush=True)


if __name__ == "__main__":
    main()
