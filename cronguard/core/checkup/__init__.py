"""The going-live checklist of `doctor`: facts in, items out. Nothing here reads a file, a clock or an environment."""
