"""The embedded broker: queues and topics on SQLite, in memory or in a file that processes share."""
