"""Compile times in graphs and words."""

from __future__ import annotations

from collections.abc import Mapping

from compilation import IMPORT, INSIDE, LOAD, TOTAL

from tvmdash.experiment import plots as series_plots
from tvmdash.experiment.info import History
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio
from tvmdash.text import format_list, format_quantity

Compilations = Mapping[tuple[str, str], Mapping[str, Series]]
"""Tonight's phases by network and frontend."""


def compilations(history: History) -> Compilations:
    """What was compiled tonight; the import is not among it."""
    phases_of: dict[tuple[str, str], dict[str, Series]] = {}
    for series in series_plots.measured_tonight(history, {"run_time"}):
        values = series.labels["build_config"]
        if values["phase"] != IMPORT:
            key = (str(series.labels["workload"]).partition(".")[2], values["frontend"])
            phases_of.setdefault(key, {})[values["phase"]] = series
    return phases_of


def plots(history: History) -> dict[str, Plot]:
    """Totals by network and frontend; for each frontend the phases of each network."""
    phases_of = compilations(history)
    frontends = tuple(dict.fromkeys(frontend for _, frontend in phases_of))
    drawn = {"tonight": _bars(history, "to machine code", phases_of, TOTAL, frontends)}
    for frontend in frontends:
        networks = tuple(network for network, other in phases_of if other == frontend)
        rows = tuple(
            tuple(_estimate(phases_of[network, frontend].get(name)) for name in INSIDE) for network in networks
        )
        title = f"{history.experiment}, night {history.stamps[-1]}: phases from {frontend}"
        drawn[f"phases_from_{frontend}"] = GroupedBar(title, "ms", networks, tuple(INSIDE), rows, lower_is_better=True)
    return dict(drawn)


def _bars(history: History, what: str, phases_of: Compilations, phase: str, frontends: tuple[str, ...]) -> GroupedBar:
    networks = tuple(dict.fromkeys(network for network, _ in phases_of))
    rows = tuple(
        tuple(_estimate(phases_of.get((name, frontend), {}).get(phase)) for frontend in frontends) for name in networks
    )
    title = f"{history.experiment}, night {history.stamps[-1]}: {what}"
    return GroupedBar(
        title, "ms", networks, tuple(f"from {frontend}" for frontend in frontends), rows, lower_is_better=True
    )


def _estimate(series: Series | None) -> Estimate | None:
    return None if series is None else Estimate(series.values[-1], series.low[-1], series.high[-1])


def summary(usual: Summary, history: History) -> Summary:
    """`usual` without its lines on the fastest and slowest, and with what each compilation consisted of."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """A line for the import, one for each compilation, and how the frontends compare."""
    phases_of = compilations(history)
    imports = [
        f"- import of TVM: {_ms(series)}"
        for series in series_plots.measured_tonight(history, {"run_time"})
        if series.labels["build_config"]["phase"] == IMPORT
    ]
    lines = [
        f"- {network} from {frontend}: {_ms(phases[TOTAL])} to machine code ({_shares(phases)})"
        for (network, frontend), phases in phases_of.items()
        if TOTAL in phases
    ]
    return [*imports, *lines, *_frontends(phases_of)]


def _shares(phases: Mapping[str, Series]) -> str:
    total = phases[TOTAL].values[-1]
    parts = [name for name in INSIDE if name in phases and name != LOAD]
    return format_list(
        [f"{name.replace('_', ' ')} {phases[name].values[-1] / total:.0%}".replace("%", " %") for name in parts], 9
    )


def _frontends(phases_of: Compilations) -> list[str]:
    """ONNX against the network's own description, over the networks that were compiled from both."""
    pairs = [
        (phases[TOTAL].values[-1], phases_of[network, "onnx"][TOTAL].values[-1])
        for (network, frontend), phases in phases_of.items()
        if frontend == "relax" and TOTAL in phases and TOTAL in phases_of.get((network, "onnx"), {})
    ]
    return [f"- from onnx against from relax: {format_ratio(geometric_mean_ratio(pairs))}"] if pairs else []


def _ms(series: Series) -> str:
    return format_quantity(series.values[-1], "ms")
