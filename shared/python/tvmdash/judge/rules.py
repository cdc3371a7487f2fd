"""Every number that the judge decides by, with why it is what it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


def _rule(value: Any, why: str) -> Any:
    return field(default=value, metadata={"why": why})


@dataclass(frozen=True)
class Rules:
    """The judge's numbers; `why` of each is in the field's metadata. Odds are for a step against none."""

    told: float = _rule(19.0, "Told from these odds on: of what is told, one in twenty may be wrong.")
    suspected: float = _rule(0.5, "Suspected, amber, from these odds on; set by what quiet homes make of it.")
    open: float = _rule(0.25, "Undecided from these odds on: a step is neither told nor excluded.")
    worth_measuring: float = _rule(0.002, "From these odds on, up to those of telling, two builds are measured again.")
    steps_a_night: float = _rule(
        0.1, "How often a home has a step of a single point, on a night with a new build; shared by its points."
    )
    fewest_points: int = _rule(15, "The same is shared by so many points at least, so that small homes tell no more.")
    step_of_home: float = _rule(0.02, "How often a new build moves all points of a home.")
    step_of_experiments: float = _rule(0.02, "How often it moves those of an experiment, shared by the experiments.")
    step_of_code: float = _rule(0.05, "How often it moves those whose generated code it changed.")
    same_code: float = _rule(0.3, "A step at a build that left a point's code as it was is so much rarer than any.")
    other_code: float = _rule(2.0, "At a build that changed it, so much more frequent.")
    differs_from_reference: float = _rule(
        0.5, "The odds that a point differs from a release: many commits lie between."
    )
    back_again: float = _rule(0.02, "How often a build takes back a step that is open.")
    least: float = _rule(0.01, "A smaller step of one point is not told: nobody acts on it.")
    least_of_group: float = _rule(0.005, "The same of a step that many points share.")
    slabs: tuple[float, ...] = _rule(
        (0.015, 0.05, 0.15), "Standard deviations of true steps, as likely as one another: from layout to lost fusing."
    )
    sizes_of_group: tuple[float, ...] = _rule(
        (
            0.005,
            0.0065,
            0.0085,
            0.011,
            0.014,
            0.018,
            0.024,
            0.03,
            0.04,
            0.05,
            0.065,
            0.085,
            0.11,
            0.14,
            0.18,
            0.25,
            0.4,
        ),
        "The sizes that a step of many points may have, as likely as one another.",
    )
    share_of_group: float = _rule(0.75, "Of the points of a home or an experiment that moves, so many move.")
    share_of_code: float = _rule(0.5, "Of the points whose code a build changed, so many move together.")
    alike: float = _rule(0.2, "The points of one step differ by this share of it.")
    back: float = _rule(0.4, "A step that leaves less than this share of an open one is its end.")
    clearest: int = _rule(2, "So many of the clearest series of a group say nothing of the others.")
    far: float = _rule(3.0, "A series so many standard errors from the step of all has one of its own.")
    known: float = _rule(0.6, "Of a group, so many have to be known, or to have a step, for it to be one of all.")
    known_step: float = _rule(0.3, "A step that was told is of any size: what is known of it is what was measured.")
    nine_of_ten: float = _rule(1.28, "So many standard errors farther out nine of ten are beyond a limit.")
    worth: float = _rule(0.7, "Less than this share of the least step is not measured again.")
    patience: float = _rule(2.0, "Each time that a point was measured again others come first by this (log odds).")
    spare: float = _rule(1.5, "What would be told is measured again until it is told by this to spare (log odds).")
    crowd: int = _rule(
        12, "Where so many series jump at one build, the striking jumps are luck as well: few of so many have a step."
    )
    many: int = _rule(
        6, "So many series that jump at one build show how luck scatters there; fewer may be those that a step moved."
    )
    most_factor: float = _rule(1.5, "A night's pairs scatter wider than usual by this at most (logarithm).")
    least_factor: float = _rule(-0.7, "And narrower by this.")
    least_slab: float = _rule(0.004, "A step that is taken back is taken back to within this, or its share of alike.")
    freedom: float = _rule(6.0, "Degrees of freedom of errors of which nothing else is known.")
    kurtosis_of_luck: float = _rule(6.0, "Excess kurtosis of a build's luck: that of Student's t with 5 degrees.")
    least_freedom: float = _rule(
        8.0, "Luck that was measured has lighter tails than any that it is compared with here."
    )
    most_freedom: float = _rule(20.0, "Pairs have heavy tails as well, however many there are.")
    pair_sd: float = _rule(
        0.013, "Scatter of a pair of processes before any is known (0.27.0.post1, one thread: 0.7 to 2.5 %)."
    )
    pair_sd_of_device: float = _rule(
        0.05, "The same on another device, by the wall clock (PoCL beside load: 3 to 23 %)."
    )
    pair_sd_of_compiling: float = _rule(
        0.07,
        "The same of two compilations, by the CPU clock (0.27.0 beside load: 5.5 and 8.8 %; by the wall clock 30).",
    )
    pair_freedom: float = _rule(8.0, "What the home's scatter of pairs counts for in that of a series.")
    beyond_own: float = _rule(
        2.33,
        "At most what the series' own pairs allow, 99 to 1 (standard normal deviations): on an H100 they scatter by "
        "0.14 % at 120 µs and by 17 % at 6 µs.",
    )
    most_pair_sd: float = _rule(
        0.08, "A night whose pairs scatter more, and more than the series' usually do, says nothing of other nights."
    )
    odd_night: float = _rule(3.0, "Where a night's pairs scatter by so many times the usual variance, theirs counts.")
    night_sd: float = _rule(0.001, "What a night's ratio differs by beyond its pairs.")
    code_luck: float = _rule(
        0.0025,
        "How builds differ because their generated code lies elsewhere, before anything is known (measured on "
        "0.27.0.post1: 0.02 to 0.34 %).",
    )
    library_luck: float = _rule(
        0.002, "The same of TVM's own libraries (0.1 % for networks, 0.4 % for overhead of calls)."
    )
    luck_freedom: float = _rule(8.0, "What those guesses count for among the jumps of a home.")
    luck_of_home_freedom: float = _rule(6.0, "What the luck of a home counts for in that of a series.")
    most_jump: float = _rule(9.0, "A jump counts for so many times its expected square at most.")
    striking_jump: float = _rule(
        4.0, "A recent jump beyond so many times what is expected may be a step; it says nothing of its series' luck."
    )
    least_luck: float = _rule(0.0015, "No luck is smaller: few builds cannot exclude it.")
    redrawn: float = _rule(
        0.4,
        "The share of the luck of generated code that another layout draws anew, before anything is known: less than "
        "was measured (0.5), since where none is redrawn, luck that looks redrawn is told.",
    )
    redrawn_freedom: float = _rule(8.0, "What that guess counts for.")
    round_sd: float = _rule(
        0.01, "What all series of a round of whole runs have in common by chance, before anything is known."
    )
    round_freedom: float = _rule(4.0, "What that guess counts for.")
    odd_round: float = _rule(
        4.5, "A round is held at so many median deviations from the median of rounds (three standard deviations)."
    )
    fewest_pairs: int = _rule(5, "Of fewer pairs nothing is told and no interval is given.")
    round: int = _rule(5, "So many pairs are measured again at once.")
    most_rounds: int = _rule(20, "So often at most for one point a night.")
    of_pairs: float = _rule(
        0.35, "Where pairs make up less than this share of a step's error, the rest being luck, no more are measured."
    )
    layouts: int = _rule(
        3, "Rounds of a night take turns in so many layouts of the code: more average more of its luck away."
    )
    window: int = _rule(40, "So many measurements of a series are weighed.")
    builds: int = _rule(8, "A step is looked for at so many of the last builds.")
    errors_of_interval: float = _rule(2.1, "A 95 % interval reaches so many standard errors, measured in simulation.")
    most_odds: float = _rule(700.0, "Logarithms of odds are kept up to this: it is certain.")
    joined: float = _rule(0.25, "Two levels known less well than this are not joined: nothing is said of them.")

    null_marks: tuple[float, ...] = _rule(
        (1.0, 2.0), "Nulls are counted beyond so many standard errors: 31.7 and 4.6 % are expected there."
    )
    least_nulls: int = _rule(
        200, "Of fewer, a home's own past says nothing of chance: the width of errors would be known to no 10 %."
    )

    def log(self, name: str) -> float:
        """Return the logarithm of the rule of that name."""
        return math.log(getattr(self, name))

    def chance_of_point(self, points: int) -> float:
        """Bound how often one of so many points is told on a night on which nothing changed.

        Evidence for a step exceeds any limit at most as often as one over the limit (Ville 1939), however often it is
        looked at again.
        """
        return math.exp(self.log_of_point(points)) / self.told

    def log_of_point(self, points: int) -> float:
        """The log odds of a step of one of so many points at one build."""
        return math.log(self.steps_a_night / max(points, self.fewest_points))

    @property
    def chance_of_points(self) -> float:
        """The rate, at most, at which any point is told by chance."""
        return self.steps_a_night / self.told

    @property
    def chance_of_groups(self) -> float:
        """The rate, at most, at which many points at once are told by chance."""
        return (self.step_of_home + self.step_of_experiments + self.step_of_code) / self.told


RULES = Rules()
