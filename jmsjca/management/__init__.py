"""Management: the command line and the demo. Reads every room; no room imports it."""
