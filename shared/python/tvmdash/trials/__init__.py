"""Trials, read and in words: for the command line, for pull requests, for the website."""
