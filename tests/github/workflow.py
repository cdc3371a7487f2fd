"""The jobs of a GitHub workflow, read from its file and run step by step as a runner does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def read_yaml(text: str) -> Any:
    """The value of YAML as workflows use it: maps, lists of maps, blocks of text, lists in brackets, comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    value, rest = _read_block(lines, 0)
    assert not rest, rest
    return value


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_block(lines: list[str], least: int) -> tuple[Any, list[str]]:
    own = _indent(lines[0])
    assert own >= least, lines[0]
    if lines[0].lstrip().startswith("- "):
        return _read_list(lines, own)
    values: dict[str, Any] = {}
    while lines and _indent(lines[0]) == own:
        name, colon, inline = lines[0].strip().partition(":")
        assert colon, lines[0]
        lines = lines[1:]
        if inline.partition(" #")[0].strip() == "|":
            end = next((at for at, line in enumerate(lines) if _indent(line) <= own), len(lines))
            values[name] = "".join(f"{line[_indent(lines[0]) :]}\n" for line in lines[:end])
            lines = lines[end:]
        elif inline.partition(" #")[0].strip():
            values[name] = _read_scalar(inline.partition(" #")[0].strip())
        else:
            values[name], lines = _read_block(lines, own + 1)
    return values, lines


def _read_list(lines: list[str], own: int) -> tuple[list[Any], list[str]]:
    items = []
    while lines and _indent(lines[0]) == own and lines[0].lstrip().startswith("- "):
        item, lines = _read_block([f"{' ' * (own + 2)}{lines[0].lstrip()[2:]}", *lines[1:]], own + 2)
        items.append(item)
    return items, lines


def _read_scalar(text: str) -> Any:
    if text.startswith("["):
        return [part.strip() for part in text.strip("[]").split(",")]
    return {} if text == "{}" else text.strip('"') if text.startswith('"') else text


@dataclass
class Runner:
    """Runs the steps of one job; `context` are the values of expressions, by their names."""

    job: dict[str, Any]
    folder: Path
    context: Mapping[str, str]
    environment: Mapping[str, str]
    logs: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def run(self) -> bool:
        """Run the steps in order; whether all went well. After a failure only those go on that say so."""
        for step in self.job["steps"]:
            is_good = not any(self.codes.values())
            if is_good or (
                self.codes.get("check who asks, and for what") == 0 and "!cancelled()" in step.get("if", "")
            ):
                self._run_step(step)
        return not any(self.codes.values())

    def _run_step(self, step: dict[str, Any]) -> None:
        assert "${{" not in step["run"], "an expression in a script is a way to inject commands"
        script = self.folder / "script.sh"
        script.write_text(step["run"])
        shell = self.job["defaults"]["run"]["shell"].replace("{0}", str(script)).split()
        stated = {**self.job["env"], **step.get("env", {})}
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            **self.environment,
            **{name: self._evaluate(text) for name, text in stated.items() if name not in self.environment},
        }
        done = subprocess.run(
            shell, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=180,
        )  # fmt: skip
        self.codes[step["name"]] = done.returncode
        self.logs[step["name"]] = done.stdout + done.stderr

    def _evaluate(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self.context[match[1]], text)
