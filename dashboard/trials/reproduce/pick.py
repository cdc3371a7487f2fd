"""One old receipt of a home, drawn by a seed."""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import runs_here
from dashboard.trials import receipt as receipts
from dashboard.trials.points import key_of, point_of
from dashboard.trials.receipt import Receipt
from tvmdash import common, records
from tvmdash.contracts.reproduction import Drawn
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

RANDOM = "random"
"""In place of a receipt's name."""
REPRODUCTIONS = "reproductions"
_DAY_S = 86400.0


def draw(home: Home, folder: Path, *, before: str, seed: int, sample: int, rebuild: bool) -> tuple[Receipt, Drawn]:
    """A receipt of a night before the stamp `before`, and the series of `sample` of its points (0: all).

    Those whose artifact is in `folder` and runs here come first; others only where there is none and `rebuild`.
    An older night is likelier in proportion to its age, one that was repeated n times is 1 + n times less likely.
    The draw depends on the seed, `before` and what is there. DashboardError where there is nothing to draw.
    """
    rng = random.Random(f"{seed} {before}")
    at_hand = frozenset(artifact.key for artifact in artifact_store.artifacts_in(folder) if runs_here(artifact))
    for keys in (at_hand, None) if rebuild else (at_hand,):
        weights = _weigh_receipts(home, before, keys)
        for name in _order_by_weight(weights, rng):
            receipt = _read_receipt(home, name, keys)
            if receipt is None:
                continue
            chance = round(weights[name] / sum(weights.values()), 6)
            return receipt, Drawn(
                seed, receipt.experiment, receipt.stamp, _sample(receipt, sample, rng), len(weights), chance
            )
    what = "" if rebuild else f" whose TVM is in {folder}"
    raise DashboardError(
        f"{home.root}: no earlier night{what} has a complete receipt (artifact, code, config, "
        "machine). Run a night first."
    )


def _sample(receipt: Receipt, count: int, rng: random.Random) -> tuple[str, ...]:
    """The IDs of all series of so many points: to measure one point takes as long for one of them as for all."""
    points: dict[str, list[str]] = {}
    for value in receipt.repeatable:
        points.setdefault(key_of(point_of(value.key.labels)), []).append(value.key.id)
    if not 0 < count < len(points):
        return ()
    return tuple(sorted(ident for text in rng.sample(sorted(points), count) for ident in points[text]))


def _weigh_receipts(home: Home, before: str, keys: frozenset[str] | None) -> dict[str, float]:
    """The weight of each EXPERIMENT/STAMP that may be drawn, by the nights' own records; of these artifacts, or any."""
    now = common.parse_stamp(before)
    nights = {
        stamp for stamp in home.night_stamps() if stamp < before and (keys is None or keys & _list_used(home, stamp))
    }
    times = Counter(_list_repeated(home))
    parent = home.data("x").parent
    names = [
        f"{folder.name}/{stamp}"
        for folder in (sorted(parent.iterdir()) if parent.is_dir() else ())
        for stamp in records.data_stamps(folder)
        if stamp in nights
    ]
    ages = {name: (now - common.parse_stamp(name.rpartition("/")[2])).total_seconds() / _DAY_S for name in names}
    return {name: age / (1 + times[name]) for name, age in ages.items()}


def _list_used(home: Home, stamp: str) -> set[str]:
    """The keys of the artifacts that the night used; a night whose record cannot be read is not drawn."""
    with contextlib.suppress(DashboardError):
        value = common.read_json(home.night_file(stamp))
        artifacts: Any = value.get("artifacts") if isinstance(value, dict) else None
        return {str(artifact.get("key")) for artifact in artifacts or () if isinstance(artifact, dict)}
    return set()


def _list_repeated(home: Home) -> Iterator[str]:
    """EXPERIMENT/STAMP of each reproduction so far."""
    for path in sorted((home.root / "results" / REPRODUCTIONS).glob("*.json")):
        with contextlib.suppress(DashboardError):
            value = common.read_json(path)
            if isinstance(value, dict):
                yield f"{value.get('experiment')}/{value.get('night')}"


def _order_by_weight(weights: dict[str, float], rng: random.Random) -> list[str]:
    """All of them in the order in which they would be drawn one after the other without putting back.

    Source: Efraimidis & Spirakis 2006, "Weighted random sampling with a reservoir".
    """
    keys = {name: -math.log(1.0 - rng.random()) / weight for name, weight in weights.items() if weight > 0}
    return sorted(keys, key=keys.__getitem__)


def _read_receipt(home: Home, name: str, keys: frozenset[str] | None) -> Receipt | None:
    """The receipt, where it pins what it needs, holds a value and, with `keys`, its artifact is one of them."""
    with contextlib.suppress(DashboardError):  # imported, added by hand or damaged: another is drawn
        receipt = receipts.read(home, name)
        if receipt.repeatable and (keys is None or receipt.artifact.get("key") in keys):
            return receipt
    return None
