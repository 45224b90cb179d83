"""Argument parsing and rendering; the only place that prints and exits."""
