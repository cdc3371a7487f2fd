"""The side of a host: it measures a night for a home on another machine, and hands over what it measured."""
