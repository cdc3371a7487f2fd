"""Plots: described as data, drawn by one renderer."""

from __future__ import annotations

from tvmdash.plot_util.drawing import (
    Bar,
    BarValue,
    Course,
    Distribution,
    Estimate,
    GroupedBar,
    HeatMap,
    Line,
    Longitudinal,
    Mark,
    Panel,
    Plot,
    Span,
    Track,
    alt_text,
    draw,
    render,
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
