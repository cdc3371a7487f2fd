"""docs/Dockerfile: what can be known of an image without making it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tvmdash.machine.hardware import LABEL_FILE, find_container

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "docs" / "Dockerfile").read_text(encoding="utf-8")


def test_its_label_is_read_as_the_images_tag(tmp_path: Path) -> None:
    command = re.search(r'RUN test -n "\$TAG" && (printf .*) > (\S+)', TEXT)
    assert command is not None
    assert command[2] == f"/{LABEL_FILE}"
    written = subprocess.run(
        ["sh", "-c", command[1]], env={"TAG": "bench:7"}, capture_output=True, text=True, check=True
    )
    assert json.loads(written.stdout) == {"tag": "bench:7"}
    (tmp_path / LABEL_FILE).parent.mkdir()
    (tmp_path / LABEL_FILE).write_text(written.stdout)
    found = find_container({}, tmp_path)
    assert found is not None
    assert found.tag == "bench:7"


def test_what_it_runs_is_in_the_checkout_and_environments_of_the_host_are_not_copied() -> None:
    for path in re.findall(r"/opt/dashboard/(\S+?)[\s\"\]]", TEXT):
        assert (REPOSITORY / path).is_file()
    assert {".venv", ".test-cache"} <= set((REPOSITORY / ".dockerignore").read_text().split())
