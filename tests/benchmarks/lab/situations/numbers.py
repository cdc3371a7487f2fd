"""Exact numbers, accuracies, rates, signed and undeclared numbers."""

from __future__ import annotations

from tests.benchmarks.lab.claims import Case, must_tell, never_regression
from tests.benchmarks.lab.plant import step
from tests.benchmarks.lab.rows import CANARY, NETS, OPS, Experiment, Number
from tests.benchmarks.lab.situations.situation import situation
from tests.benchmarks.lab.world import Draw, World

MODELS = Experiment("models", 3, ("run_time", "code_size", "accuracy"))
FOREIGN = Experiment(
    "foreign",
    numbers=(
        Number("$.numbers.throughput", "rate", "higher", 120.0),
        Number("$.numbers.latency", "time", "lower", 3.5),
        Number("$.numbers.kernels", "exact", "lower", 210.0),
        Number("$.numbers.top1", "accuracy", "higher", 0.913),
        Number("$.numbers.margin", "number", "none", 0.0, sd=0.02, signed=True),
        Number("$.numbers.undeclared", "number", "none", 55.0, declared=False),
    ),
)


def _world(draw: Draw, nights: int = 40) -> World:
    return World(draw, nights, (OPS, FOREIGN, CANARY))


def code_size(draw: Draw, byte: bool) -> Case:
    """Generated code gets larger: by one byte in one point, or by 0.4 % in two; smaller in another."""
    world = World(draw, 30)
    rows = world.pick("ops", "code_size")
    size = 1 / world.rows[rows[0]].base if byte else 0.004
    changes = [*step(world, rows[: 1 if byte else 2], 20, size), *step(world, rows[3:4], 25, -0.02)]
    return Case(world, must_tell(world, changes))


def early_code_size(draw: Draw) -> Case:
    """Generated code gets 2 % larger on the second night."""
    world = World(draw, 12)
    return Case(world, must_tell(world, step(world, world.pick("nets", "code_size")[:2], 1, 0.02)))


def accuracy(draw: Draw) -> Case:
    """Accuracy falls from 1 to 0.997 in one point and comes back ten nights later."""
    world = World(draw, 40, (NETS, MODELS, CANARY))
    return Case(world, must_tell(world, step(world, world.pick("models", "accuracy")[:1], 20, -0.003, until=30)))


def rate(draw: Draw, size: float) -> Case:
    """A foreign experiment's throughput changes: more of it is better."""
    world = _world(draw)
    never = [never_regression(world, why="throughput rose")] if size > 0 else []
    row = [at for at, row in enumerate(world.rows) if row.kind == "rate"]
    return Case(world, must_tell(world, step(world, row, 29, size), within=3), never)


def foreign_exact(draw: Draw) -> Case:
    """A foreign count rises by one, and a foreign accuracy falls by half a per cent."""
    world = _world(draw)
    kernels, top1 = (next(at for at, row in enumerate(world.rows) if row.point.endswith(name)) for name in (
        "kernels", "top1"
    ))  # fmt: skip
    changes = [*step(world, [kernels], 20, 1 / 210), *step(world, [top1], 25, -0.005)]
    return Case(world, must_tell(world, changes))


def signed(draw: Draw) -> Case:
    """A number around 0 rises by ten times its scatter; nobody says which way is better."""
    world = _world(draw, 45)
    row = next(at for at, row in enumerate(world.rows) if row.is_signed)
    return Case(world, must_tell(world, step(world, [row], 30, 0.2), within=3), [
        never_regression(world, why="it has no worse way")
    ])  # fmt: skip


def undeclared(draw: Draw) -> Case:
    """A number that nobody declared rises by 10 %: it changed, which is neither better nor worse."""
    world = _world(draw, 45)
    row = next(at for at, row in enumerate(world.rows) if row.point.endswith("undeclared"))
    changes = step(world, [row], 30, 0.10)

    return Case(world, must_tell(world, changes, within=3), [never_regression(world, why="it has no worse way")])


SITUATIONS = (
    situation(code_size, "one_byte", byte=True),
    situation(code_size, "small", byte=False),
    situation(early_code_size),
    situation(accuracy),
    *(situation(rate, f"{100 * size:.0f}", size=size) for size in (0.10, -0.10)),
    situation(foreign_exact),
    situation(signed),
    situation(undeclared),
)
