"""The application: plans a night, runs it and keeps the measurements."""
