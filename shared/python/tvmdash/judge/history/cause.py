"""Why the detector decided as it did, and whose doing a shift was: values for programs, whose words are made elsewhere.

A cause is decided once, where the shift and its evidence are known. The order of the evidence, strongest first:
artifacts measured in turn the same night; each artifact measured in turn with a reference, on its own night; the same
artifact on both sides of the shift; controls; nothing. The generated code (module hash) decides nothing: TVM's VM,
thread pool, allocator and FFI are in no module. It tells TVM's runtime from its generated code once the shift is known
to be TVM's.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tvmdash.common import structured

CODE, RUNTIME, BUILD, MACHINE, UNKNOWN = "code", "runtime", "build", "machine", "unknown"
"""TVM's generated code; its runtime; TVM, one of both or either; not TVM; nobody can say."""
MEASURED_AGAIN, PAIRED, SAME_ARTIFACT, SAME_VERSION, OLDER_ARTIFACTS, EXACT, CONTROLS, CONTROL, NOTHING = (
    "measured_again", "paired", "same_artifact", "same_version", "older_artifacts", "exact", "controls", "control",
    "nothing",
)  # fmt: skip
"""In the order of their strength; PAIRED: beside a reference on either side; CONTROL: the series itself is one."""
_ORDER = (MEASURED_AGAIN, PAIRED, CONTROL, SAME_ARTIFACT, SAME_VERSION, OLDER_ARTIFACTS, EXACT, CONTROLS, NOTHING)
_WHOSE = (CODE, RUNTIME, BUILD, MACHINE, UNKNOWN)
if TYPE_CHECKING:
    # No literal is made of a variable for a type checker; at run time it is what files are checked by.
    _Whose = str
    _Evidence = str
else:
    _Whose, _Evidence = Literal[_WHOSE], Literal[_ORDER]


@dataclass(frozen=True)
class Cause:
    """Whose a shift was, by which evidence, with its numbers.

    same_code, changed_code: of how many series the generated code is known to be the same, to differ, on both sides.
    controls, controls_moved: how many were measured, how many moved clearly with the shift; controls_shift: by how
    much, as a fraction: those that moved, or all of them where too few did. old, new: what artifacts from before and
    since gave when they were measured again that night, as ratios to the level before; old_artifacts, new_artifacts:
    which. older: how many series had an older artifact measured again, older_shift: by how much it had moved.
    experiment_changed: the experiment's own code or config did as well.
    """

    whose: _Whose = UNKNOWN
    evidence: _Evidence = NOTHING
    same_code: int = 0
    changed_code: int = 0
    controls: int = 0
    controls_moved: int = 0
    controls_shift: float | None = None
    old: float | None = None
    new: float | None = None
    old_artifacts: tuple[str, ...] = ()
    new_artifacts: tuple[str, ...] = ()
    older: int = 0
    older_shift: float | None = None
    experiment_changed: bool = False

    @property
    def is_tvms(self) -> bool:
        return self.whose in {CODE, RUNTIME, BUILD}

    @property
    def blame(self) -> str:
        """Machine, compiler or unknown."""
        return "compiler" if self.is_tvms else self.whose

    def to_json(self) -> dict[str, Any]:
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: Any) -> Cause:
        """The cause that `to_json` wrote; DashboardError where it is none."""
        return structured.from_json(cls, value, "the cause of an incident")


def of_tvm(cause: Cause) -> Cause:
    """Attribute the shift to TVM, by the same evidence; the generated code tells which part of TVM."""
    known = {(True, False): RUNTIME, (False, True): CODE}
    return replace(cause, whose=known.get((cause.same_code > 0, cause.changed_code > 0), BUILD))


def of_many(causes: Sequence[Cause]) -> Cause:
    """The cause of what several series did together: that with the strongest evidence, the first of equals."""
    best = min(causes, key=lambda cause: _ORDER.index(cause.evidence))
    best = replace(
        best,
        same_code=sum(cause.same_code for cause in causes),
        changed_code=sum(cause.changed_code for cause in causes),
        experiment_changed=any(cause.experiment_changed for cause in causes),
    )
    several = len({cause.whose for cause in causes if cause.is_tvms}) > 1
    return replace(best, whose=BUILD) if best.is_tvms and several else best


class ReasonKind(enum.StrEnum):
    """The kind of a reason. The first four: the series could not be judged at all."""

    NO_VALUE = "no_value"
    NOT_POSITIVE = "not_positive"
    TOO_FEW_NIGHTS = "too_few_nights"
    NEW_LEVEL = "new_level"
    ONE_BUILD = "one_build"
    WITHIN_NOISE = "within_noise"
    WITHIN_ODDS = "within_odds"
    BACK = "back"
    TOO_SHORT = "too_short"
    NOT_RELEVANT = "not_relevant"
    DRIFT_OR_RUN = "drift_or_run"
    REFUTED = "refuted"
    OPEN = "open"
    MODES = "modes"
    YOUNG = "young"
    UNMEASURED = "unmeasured"
    SHIFTED = "shifted"
    OLDER_ARTIFACTS_MOVED = "older_artifacts_moved"
    CONTROL_MOVED = "control_moved"
    MACHINE_MOVED = "machine_moved"
    ALL_MOVED = "all_moved"


UNJUDGED = (
    ReasonKind.NO_VALUE,
    ReasonKind.NOT_POSITIVE,
    ReasonKind.TOO_FEW_NIGHTS,
    ReasonKind.NEW_LEVEL,
)


@dataclass(frozen=True)
class Reason:
    """A kind with its numbers, None where it has none.

    value: tonight's value (not positive), z (within noise), odds for a step (within odds) or the relative effect (not
    relevant). nights: of history,
    of the level, or of the suspected shift. needed: how many nights, which z or which odds it would have had to reach.
    """

    kind: ReasonKind
    value: float | None = None
    nights: int | None = None
    needed: float | None = None

    @property
    def is_unjudged(self) -> bool:
        """True where the series could not be judged at all."""
        return self.kind in UNJUDGED

    def to_json(self) -> dict[str, Any]:
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: Any) -> Reason:
        """The reason that `to_json` wrote; DashboardError where it is none."""
        return structured.from_json(cls, value, "the reason of a decision")
