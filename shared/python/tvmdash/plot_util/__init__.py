"""Plots: described as data, drawn by one renderer."""

from __future__ import annotations

from tvmdash.plot_util.courses import (
    Course,
    Panel,
    Span,
    Track,
)
from tvmdash.plot_util.drawing import (
    alt_text,
    draw,
    render,
)
from tvmdash.plot_util.specs import (
    Bar,
    BarValue,
    Distribution,
    Estimate,
    GroupedBar,
    HeatMap,
    Line,
    Longitudinal,
    Mark,
    Plot,
)

__all__ = [
    "Bar",
    "BarValue",
    "Course",
    "Distribution",
    "Estimate",
    "GroupedBar",
    "HeatMap",
    "Line",
    "Longitudinal",
    "Mark",
    "Panel",
    "Plot",
    "Span",
    "Track",
    "alt_text",
    "draw",
    "render",
]
