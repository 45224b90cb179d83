"""cronguard: the command that people put in front of their cron jobs."""

# Kept here as text: importlib.metadata costs 42 ms at start. A test compares it with pyproject.toml.
__version__ = "0.1.0"
