"""Validation by JSON Schema (2020-12): jsonschema-rs for a quick verdict, jsonschema for the errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


class Schema:
    """A JSON Schema, compiled once. Formats are not checked."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import jsonschema_rs

        self._schema = schema
        self._quick = jsonschema_rs.Draft202012Validator(dict(schema), validate_formats=False)

    def errors(self, value: object) -> Iterable[ValidationError]:
        """Return each error of `value`, as jsonschema finds them; none where it is valid."""
        if self._is_surely_valid(value):
            return ()
        from jsonschema import Draft202012Validator  # here: most values are valid, and importing it takes 70 ms

        return Draft202012Validator(self._schema).iter_errors(value)

    def _is_surely_valid(self, value: object) -> bool:
        try:
            return self._quick.is_valid(value)
        except (TypeError, ValueError):  # nothing that JSON has, as NaN; jsonschema has its words for that
            return False
