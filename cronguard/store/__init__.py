"""Where runs and claims are kept: SQLite with flock, or PostgreSQL, behind one small contract."""
