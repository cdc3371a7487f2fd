"""Archives of a home: incremental, verified, restorable."""
