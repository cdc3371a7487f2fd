"""The command line: the commands, the exit codes, and the one place that maps errors to them."""
