"""What the ratios of an experiment say of each night, in worlds whose truth is known: a table of all answers.

A row of a series tells what is decided, the interval, the step that would have been seen, and how tonight's TVM stands
to the reference. A threshold that moves moves rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tests.golden_files import Golden
from tvmdash.detect.beside.builds import Again, RatioHistory
from tvmdash.detect.beside.decisions import RatioDecision, decide
from tvmdash.detect.beside.luck import Elsewhere, Learned
from tvmdash.detect.beside.reference import ReferenceStanding, compare_with_reference


@dataclass(frozen=True)
class World:
    """An experiment on one reference or, with `chain`, each beside the build before. jumps: of the first series."""

    nights: int
    series: int = 8
    steps: dict[int, float] = field(default_factory=dict)
    jumps: dict[int, float] = field(default_factory=dict)
    scatter: float = 0.008
    luck: float = 0.0
    pairs: int = 5
    chain: bool = False
    nights_of_build: int = 1
    new_reference: int = 0
    new_code: tuple[int, ...] = ()
    unknown: int = 0
    device: str = "cpu"
    common: float = 0.0
    again: float = 0.0

    def histories(self, seed: int) -> dict[str, RatioHistory]:
        rng, nights = np.random.default_rng([seed, 55]), np.arange(self.nights)
        build = nights // self.nights_of_build + 1
        at = build - 1
        level = self.luck * rng.standard_normal((self.series, at[-1] + 1))[:, at]
        for night, step in self.steps.items():
            level[0, night:] += step
        for night, jump in self.jumps.items():
            level[0, night] += jump
        level[:, self.nights // 2 :] += self.common
        before = np.concatenate([np.zeros((self.series, 1)), level[:, :-1]], axis=1)
        observed = (level - before if self.chain else level)[:, :, None]
        observed = observed + self.scatter * rng.standard_normal((self.series, self.nights, self.pairs))
        reference = np.maximum(build - 1, 90 * (build == 1)) if self.chain else np.full(self.nights, 90)
        if self.new_reference:
            reference[self.new_reference :] = build[self.new_reference - 1]
            observed[:, self.new_reference :] -= level[:, [self.new_reference - 1], None]
        code = np.searchsorted(np.array(self.new_code), nights, side="right") + 1
        known = nights >= self.unknown
        return {
            f"s{number}": RatioHistory(
                observed[number].mean(axis=1),
                observed[number].std(axis=1, ddof=1) if self.pairs > 1 else np.full(self.nights, np.nan),
                np.full(self.nights, float(self.pairs)),
                build * known,
                reference,
                code,
                device=self.device,
            )
            for number in range(self.series)
        }

    def until(self, night: int, seed: int) -> dict[str, RatioHistory]:
        """What is known on a night."""
        cut = {
            name: replace(
                known,
                **{
                    each: getattr(known, each)[: night + 1]
                    for each in ("logs", "std", "pairs", "build", "reference", "code")
                },
            )
            for name, known in self.histories(seed).items()
        }
        if self.again and night in self.steps:
            cut["s0"] = replace(cut["s0"], again=(Again(self.again, 20, int(cut["s0"].build[-2])),))
        return cut


WORLDS = {
    "a step": World(12, steps={6: 0.03}),
    "a step beside the build before": World(12, steps={6: 0.04}, chain=True),
    "a small step": World(16, steps={6: 0.014}, scatter=0.004),
    "a suspicion": World(10, series=20, steps={6: 0.025}, scatter=0.013),
    "luck": World(18, steps={14: 0.04}, luck=0.012, scatter=0.004),
    "luck beside the build before": World(14, steps={9: 0.05}, luck=0.01, chain=True),
    "two series": World(10, series=2, steps={6: 0.04}, luck=0.004),
    "nights of one build": World(15, steps={9: 0.025}, nights_of_build=3),
    "one pair a night": World(12, steps={6: 0.05}, pairs=1),
    "a new reference": World(14, steps={10: 0.03}, new_reference=7),
    "new code with the step": World(14, steps={8: 0.03}, new_code=(8,), luck=0.006),
    "a restless series": World(24, steps={21: 0.05}, jumps={4: 0.04, 9: 0.05, 10: 0.05, 15: 0.04}),
    "hardly restless": World(20, steps={16: 0.05}, jumps={5: 0.04}),
    "all at once": World(14, common=0.03, luck=0.004),
    "an unknown build": World(10, steps={6: 0.04}, unknown=3),
    "another device": World(12, steps={6: 0.15}, scatter=0.05, device="opencl"),
    "measured again": World(10, steps={6: 0.022}, scatter=0.01, again=0.022),
    "a long history": World(60, steps={50: 0.02}, luck=0.006, scatter=0.004),
}


def describe(decision: RatioDecision | None, stands: ReferenceStanding) -> str:
    to_reference = f"{100 * stands.effect:+.1f} %{' differs' * stands.differs}, visible {100 * stands.visible:.1f} %"
    if decision is None:
        return f"undecided; to the reference {to_reference}"
    what = "told" if decision.is_told else "suspect" if decision.is_suspect else "quiet"
    look = "clear" if decision.is_clear else "look again" if decision.is_worth_measuring else "open"
    interval = f"{100 * decision.effect:+.1f} % ({100 * decision.low:+.1f} to {100 * decision.high:+.1f})"
    needs = f"z {np.clip(decision.z, -8.0, 8.0):.1f} of {decision.needed:.1f}, visible {100 * decision.visible:.1f} %"
    return f"{what}, {look}, {interval}, {needs}, {decision.builds} of {decision.cut}; to the reference {to_reference}"


def test_each_night_is_decided_as_the_table_says(golden: Golden) -> None:
    rows: dict[str, list[str]] = {}
    for name, world in WORLDS.items():
        rows[name] = []
        for night in [*range(min(12, world.nights)), *range(12, world.nights, 2)]:
            learned = Learned.of(world.until(night, 1))
            decided, stand = decide(learned, {}), compare_with_reference(learned)
            others = [each for each, one in decided.items() if each != "s0" and (one.is_told or one.is_suspect)]
            rows[name].append(
                f"{night}: {describe(decided.get('s0'), stand['s0'])}{'; also ' * bool(others)}{' '.join(others)}"
            )
    golden.values("decisions/beside_a_reference.json", rows)


def test_what_other_experiments_show_moves_what_is_visible_as_the_table_says(golden: Golden) -> None:
    elsewhere = Elsewhere.of(
        [Learned.of(World(30, luck=luck, jumps={9: 0.05, 20: 0.06}).histories(3)) for luck in (0.002, 0.02)]
    )
    rows = {}
    for name in ("a step", "luck", "two series", "hardly restless"):
        learned = Learned.of(WORLDS[name].histories(1))
        stands = compare_with_reference(learned)["s0"]
        rows[name] = [describe(decide(learned, {}, known)["s0"], stands) for known in (Elsewhere(), elsewhere)]
    golden.values("decisions/beside_other_experiments.json", rows)
