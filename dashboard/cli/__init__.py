"""The command line: one module per command, the exit codes, and the one place that maps errors to exit codes."""
