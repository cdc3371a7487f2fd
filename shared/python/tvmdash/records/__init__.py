"""Records: one measured point of one night, in the columns of apache/tvm#4304, and all versions of data.json."""

from __future__ import annotations

from tvmdash.common import data_stamps
from tvmdash.records.record import (
    IDENTITY,
    NOT_MEASURED,
    SCHEMA_VERSION,
    SCHEMAS,
    Build,
    Failure,
    NightData,
    PointValue,
    Record,
    SeriesKey,
    check_data,
    night_of,
    numeric_leaves,
    read_data,
    values_of,
)

__all__ = [
    "IDENTITY",
    "NOT_MEASURED",
    "SCHEMAS",
    "SCHEMA_VERSION",
    "Build",
    "Failure",
    "NightData",
    "PointValue",
    "Record",
    "SeriesKey",
    "check_data",
    "data_stamps",
    "night_of",
    "numeric_leaves",
    "read_data",
    "values_of",
]
