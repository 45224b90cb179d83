"""Cronguard for Python programs: the same store, rules and settings as the command line, in the same process."""
