"""The library that experiments and subsystems import; docs/README.md maps its layers."""

__version__ = "0.9.0"
"""Of the dashboard and of this library, which are released together; CHANGELOG.md says what each brought."""
