"""What `check` makes of what a host answers, which may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.hosts.launcher import find_faults
from dashboard.plan.settings import Host, Launcher
from tests.dashboard import homes


@pytest.mark.parametrize("number", ["abc", "-5", "1e9", "NaN", "٣", "9" * 5000])
@pytest.mark.parametrize("name", ["clock", "free_kb"])
@pytest.mark.parametrize("launcher", list(Launcher)[1:])
def test_an_answer_that_is_no_number_is_a_fault_of_the_host(
    launcher: Launcher, name: str, number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("ssh", "srun"):
        homes.script(tmp_path / program, f"#!/bin/sh\necho tvm-dashboard {name} {number}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (fault,) = find_faults(Host("box", launcher, address="box", folder="/x"))
    assert fault.startswith(f"Host box: answered '{number[:30]}")
    assert f"for {name}, not a number." in fault
