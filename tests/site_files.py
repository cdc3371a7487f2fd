"""The site's files of points as a reader of them has to take them; docs/reference/website-data.md says how."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvmdash import common

PARTS = 100_000


def read_script(path: Path) -> Any:
    """The JSON on the second line of a script."""
    _, content, end = path.read_bytes().split(b"\n")
    assert end == b""
    return common.parse_json(content, path.name)


def read_series(site: Path, name: str, *, past: bool = False) -> dict[str, Any]:
    """A series with columns of its own, of the last years or of those before."""
    index = common.read_json(site / "index.json")["series"]
    pack = index["pack"][index["id"].index(name)]
    file = read_script(site / "series" / f"{pack}{'-past' if past else ''}.js")
    return next(one for one in expand(file) if one["id"] == name)


def expand(file: dict[str, Any]) -> list[dict[str, Any]]:
    """All series of a file, each with columns of its own."""
    return [_expand(one, file) for one in file["series"]]


def _expand(one: dict[str, Any], file: dict[str, Any]) -> dict[str, Any]:
    at = range(len(file["stamp"])) if one["at"] is None else one["at"]

    def own(column: Any) -> list[Any]:
        return column if isinstance(column, list) else [column] * len(at)

    def here(column: Any) -> list[Any]:
        return [column[place] for place in at] if isinstance(column, list) else own(column)

    value = own(one["value"])
    ways = {"low": -1, "high": 1, "std": 0}
    bounds = {name: add_distances(value, own(one[name]), way) for name, way in ways.items()}
    shared = {name: here(file[name]) for name in ("stamp", "tvm", "machine")}
    pools = {name: file[name] for name in ("tvms", "machines")}
    return {
        **one,
        **shared,
        **pools,
        "value": value,
        **bounds,
        "samples": own(one["samples"]),
        "code": own(one["code"]),
    }


def add_distances(values: Sequence[float | None], distances: Sequence[float | None], way: int) -> list[float | None]:
    """What lies so far below (-1) or above (1) each value; the distance itself (0)."""
    found: list[float | None] = []
    for value, distance in zip(values, distances, strict=True):
        if value is None or distance is None:
            found.append(None)
            continue
        far = abs(value) * distance / PARTS if value else distance
        found.append(value + way * far if way else far)
    return found


def read_nights(site: Path) -> dict[str, dict[str, Any]]:
    """By stamp, what was measured that night, each with columns of its own."""
    nights = {}
    for path in sorted((site / "columns").iterdir()):
        file = read_script(path)
        codes: dict[int, int | None] = {}
        for stamp, night in file["nights"].items():
            at = list(range(night["at"])) if isinstance(night["at"], int) else night["at"]
            codes.update({place: code for place, code in zip(at, night["code"], strict=True) if code != 0})
            bounds = {name: add_distances(night["value"], night[name], way) for name, way in (("low", -1), ("high", 1))}
            kept = [codes[place] for place in at]
            code = [None if place is None else file["code"][place - 1] for place in kept]
            nights[stamp] = {**night, **bounds, "id": [file["id"][place] for place in at], "code": code}
    return nights
