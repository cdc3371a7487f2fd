"""The nginx of docs/how-to/serve.md, with exactly that snippet but for its port and folder."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def snippet(site: Path, port: int) -> str:
    found = re.search(
        r"```nginx\n(.*?)```", (REPO / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert found
    text, roots = re.subn(r"root /\S+;", f'root "{site}";', found[1])
    text, ports = re.subn(r"listen 80;", f"listen 127.0.0.1:{port};", text)
    assert (roots, ports) == (1, 1)
    return text


def configuration(folder: Path, site: Path, port: int) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f'{kind}_temp_path "{folder / kind}";' for kind in kinds)
    user = "user root;\n" if os.getuid() == 0 else ""  # the tests' folder is nobody else's
    return (
        f'{user}daemon off;\npid "{folder / "pid"}";\nerror_log stderr;\nevents {{}}\n'
        f"http {{\naccess_log off;\n{places}\n{snippet(site, port)}}}\n"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def begun(folder: Path, site: Path) -> tuple[subprocess.Popen[str], int]:
    """An nginx that answers, its files in `folder`, and its port; another port where somebody else was quicker."""
    for _ in range(5):
        port = free_port()
        (folder / "nginx.conf").write_text(configuration(folder, site, port), encoding="utf-8")
        argv = [str(NGINX), "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except ConnectionRefusedError:
                continue
            return process, port
        said = process.communicate()[1]
        assert "Address already in use" in said, said
    raise AssertionError("no port was free for nginx")
