"""The command line: one module a command, exit codes, and the one place where errors become them."""
