"""Management: the command line. It may import every room; no room imports it."""
