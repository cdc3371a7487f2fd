"""The library that experiments and subsystems import; docs/README.md maps its layers."""
