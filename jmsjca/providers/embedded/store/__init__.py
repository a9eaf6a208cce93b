"""The database of the embedded broker."""
