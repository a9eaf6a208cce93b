"""Management: the command line. Imports every package; no package imports it."""
