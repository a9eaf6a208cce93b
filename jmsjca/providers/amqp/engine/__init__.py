"""The I/O thread of a connection over proton's protocol engine."""
