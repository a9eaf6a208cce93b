"""The SQLite database of the embedded broker."""
