"""Ours beside the field: how fast AMQP clients of several languages send and receive over one broker."""
