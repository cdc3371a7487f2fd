"""The application: it plans a night, runs it, keeps what was measured."""
