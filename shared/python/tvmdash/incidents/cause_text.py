"""The cause of a shift in words: only what was measured is said."""

from __future__ import annotations

from collections.abc import Callable

from tvmdash.judge.history.cause import (
    CODE,
    CONTROL,
    CONTROLS,
    EXACT,
    MACHINE,
    MEASURED_AGAIN,
    NOTHING,
    OLDER_ARTIFACTS,
    PAIRED,
    RUNTIME,
    SAME_ARTIFACT,
    SAME_VERSION,
    UNKNOWN,
    Cause,
)
from tvmdash.text import format_percent


def describe_cause(cause: Cause) -> str:
    """Say in a sentence whose the shift is, and how that is known."""
    return f"{_format_whose(cause)}: {describe_evidence(cause)}."


def format_cause_in_short(cause: Cause) -> str:
    """Name the cause in a few words, as in "cause: TVM's runtime"."""
    if cause.whose == UNKNOWN:
        return "cause unknown, TVM's runtime or the machine" if _code_is_same(cause) else "cause unknown"
    return f"cause: {_SHORT.get(cause.whose, 'TVM')}"


_SHORT = {RUNTIME: "TVM's runtime", CODE: "TVM's generated code", MACHINE: "the machine, not TVM"}


def describe_evidence(cause: Cause) -> str:
    """Name the measurements that show the cause, as a part of a sentence."""
    return _EVIDENCE[cause.evidence](cause)


def _code_is_same(cause: Cause) -> bool:
    return cause.same_code > 0 and not cause.changed_code


def _format_whose(cause: Cause) -> str:
    if cause.whose == MACHINE:
        return "This is the machine or the experiment, not TVM" if cause.experiment_changed else _THE_MACHINE
    if cause.whose == RUNTIME:
        return "This is TVM's runtime (VM, thread pool, allocator or FFI); its generated code is the same"
    if cause.whose == CODE:
        return "This is TVM, and its generated code changed"
    if cause.whose == UNKNOWN:
        return _format_unknown(cause)
    return f"This is TVM{_format_code_count(cause)}"


_THE_MACHINE = "This is the machine, not TVM"


def _format_unknown(cause: Cause) -> str:
    if _code_is_same(cause):
        return "Cause unknown, the generated code is unchanged: TVM's runtime or the machine, not distinguished"
    return f"Cause unknown, TVM or the machine{_format_code_count(cause)}"


def _format_code_count(cause: Cause) -> str:
    """Count the series whose generated code is the same, where it is of some and not of others."""
    known = cause.same_code + cause.changed_code
    if not cause.same_code:
        return ""
    return f" (the generated code of {cause.same_code} of {known} series is the same)"


def _format_measured_again(cause: Cause) -> str:
    ratios = ""
    if cause.old is not None and cause.new is not None:
        ratios = f" ({cause.old:.2f} against {cause.new:.2f} of the level before)"
    return f"older and newer artifacts, measured in turn the same night, differ{ratios}"


def _format_same(what: str) -> Callable[[Cause], str]:
    def words(cause: Cause) -> str:
        also = "; the experiment's own code or config changed" if cause.experiment_changed else ""
        return f"{what} was measured before and after it{also}"

    return words


def _format_older(cause: Cause) -> str:
    artifacts = f"older artifacts of {cause.older} series, remeasured that night,"
    shift = format_percent(cause.older_shift or 0.0)
    return f"{artifacts} {'moved as well' if cause.whose == MACHINE else 'did not move with it'} ({shift})"


def _format_controls(cause: Cause) -> str:
    shift = format_percent(cause.controls_shift or 0.0)
    if cause.whose != MACHINE:
        moved = f", {cause.controls_moved} of them moved" if cause.controls_moved else ""
        return f"{_format_controls_count(cause.controls)} did not move with it (together {shift}{moved})"
    if cause.controls_moved:
        return f"{cause.controls_moved} of {_format_controls_count(cause.controls)} moved with it ({shift})"
    return f"{_format_controls_count(cause.controls)} together moved by {shift}"


def _format_controls_count(count: int) -> str:
    return f"{count} control{'s' * (count != 1)}"


def _format_nothing(cause: Cause) -> str:
    if cause.old_artifacts or cause.new_artifacts or cause.older:
        again = "remeasuring did not tell them apart"
    else:
        again = "no older artifact was remeasured"
    if not cause.controls:
        return f"there is no control, and {again}"
    controls = _format_controls_count(cause.controls)
    if cause.controls_moved:
        return f"{cause.controls_moved} of {controls} moved with it, and {again}"
    together = format_percent(cause.controls_shift or 0.0)
    return f"{controls} scatter{'s' * (cause.controls == 1)} too much to tell (together {together}), and {again}"


_EVIDENCE: dict[str, Callable[[Cause], str]] = {
    MEASURED_AGAIN: _format_measured_again,
    PAIRED: lambda _: "the builds before and since were measured in turn",
    SAME_ARTIFACT: _format_same("the same artifact"),
    SAME_VERSION: _format_same("the same version of TVM, whose artifact is not recorded,"),
    OLDER_ARTIFACTS: _format_older,
    EXACT: lambda _: "it is an exact number, which the machine cannot change",
    CONTROLS: _format_controls,
    CONTROL: lambda _: "a control moved, whose program never changes",
    NOTHING: _format_nothing,
}
