"""Containers, told by the files of a system, and what is known of their images."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tvmdash.machine.hardware import Container, find_container

LIBRARY = Path(__file__).resolve().parents[3] / "shared" / "python"
LABEL = {"etc/tvmdash-image.json": '{"tag": "tvm-bench:7", "hash": "sha256:aa"}'}


def system(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({".dockerenv": ""}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"var/run/secrets/kubernetes.io/token": "x"}, "kubernetes"),
        ({".singularity.d/labels.json": "{}"}, "apptainer"),
        ({"run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
        ({"proc/1/cgroup": "12:pids:/docker/0123abcd\n0::/\n"}, "docker"),
        ({"proc/1/cgroup": "4:cpu:/kubepods/besteffort/pod1\n"}, "kubepods"),
    ],
)
def test_a_container_is_known_by_what_its_engine_leaves(files: Mapping[str, str], kind: str, tmp_path: Path) -> None:
    assert find_container({}, system(tmp_path, files)) == Container(kind)


def test_a_machine_is_no_container(tmp_path: Path) -> None:
    files = {"proc/1/cgroup": "0::/init.scope\n", "etc/os-release": "NAME=Debian\n"}
    assert find_container({"HOME": "/root"}, system(tmp_path, files)) is None


def test_the_image_is_told_by_variables_then_by_its_label_then_by_podman(tmp_path: Path) -> None:
    podman = {"run/.containerenv": 'engine="podman-4.3.1"\nimage="localhost/bench:1"\nimageid="cc"\nrootless=0\n'}
    root = system(tmp_path, podman)
    assert find_container({}, root) == Container("podman", "localhost/bench:1", "cc")
    system(root, LABEL)
    assert find_container({}, root) == Container("podman", "tvm-bench:7", "sha256:aa")
    given = {"TVMDASH_DOCKER_HASH": "sha256:bb"}
    assert find_container(given, root) == Container("podman", "tvm-bench:7", "sha256:bb")


def test_a_label_alone_says_that_it_is_an_image_and_a_damaged_one_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert find_container({}, system(tmp_path / "a", LABEL)) == Container("unknown", "tvm-bench:7", "sha256:aa")
    damaged = {".dockerenv": "", "etc/tvmdash-image.json": "{tag"}
    assert find_container({}, system(tmp_path / "b", damaged)) == Container("docker")
    assert "not JSON" in caplog.text
    assert find_container({}, system(tmp_path / "c", {"etc/tvmdash-image.json": '["x"]'})) is None


def test_a_process_in_another_root_tells_that_one(tmp_path: Path) -> None:
    """As a container's does: mounts of its own, and a root of its own, in which the system's programs are seen."""
    command = ["unshare", "--mount", "--user", "--map-root-user", "--pid", "--fork"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("this system lets this user make no namespaces")
    root = system(tmp_path / "root", {".dockerenv": "", **LABEL})
    shutil.copytree(LIBRARY, root / "library")
    seen = [path for path in Path("/").iterdir() if path.is_dir() and path.name not in OWN]
    # A clone below /tmp has its Python there too, which the other root hides.
    seen += {Path(prefix) for prefix in (sys.prefix, sys.base_prefix) if Path(prefix).parts[1] in OWN}
    folders = [(shlex.quote(str(path)), shlex.quote(f"{root}{path}")) for path in seen]
    script = [f"mkdir -p {there}; mount --rbind {here} {there}" for here, there in folders]
    script += [
        f"mkdir {root}/proc",
        f"mount -t proc proc {root}/proc",
        f"exec chroot {root} {shlex.quote(sys.executable)} -c '{ASK}'",
    ]
    environment = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "PYTHONPATH": "/library"}
    argv = [*command, "sh", "-euc", "\n".join(script)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"kind": "docker", "tag": "tvm-bench:7", "image_hash": "sha256:aa"}


OWN = {"proc", "sys", "run", "tmp", "etc", "lost+found"}
"""What the other root has of its own, or lacks."""
ASK = "import json; from tvmdash.machine.hardware import find_container; print(json.dumps(vars(find_container({}))))"
