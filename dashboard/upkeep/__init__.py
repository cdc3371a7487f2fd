"""Upkeep of a home over years: strays set aside, restores rehearsed, indexes rebuilt, disks watched."""
