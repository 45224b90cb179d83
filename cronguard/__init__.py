"""cronguard: the command that people put in front of their cron jobs.

For Python programs also `from cronguard import once, items, checkpoint`, loaded when they are asked for.
"""

# Kept here as text: importlib.metadata costs 42 ms at start. A test compares it with pyproject.toml.
__version__ = "0.1.0"

__all__ = ["__version__", "checkpoint", "items", "once"]

TYPE_CHECKING = False  # as typing has it, which not everybody who wants the version should have to load
if TYPE_CHECKING:
    from cronguard.api import checkpoint, items
    from cronguard.api.once import once


def __getattr__(name: str) -> object:
    """PEP 562."""
    from importlib import import_module

    if name in ("checkpoint", "items"):
        return import_module(f"cronguard.api.{name}")
    if name == "once":
        return import_module("cronguard.api.once").once
    raise AttributeError(f"module 'cronguard' has no attribute {name!r}")
