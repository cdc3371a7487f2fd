"""Archives of a home: what changed since the last one, verified, and restored."""
