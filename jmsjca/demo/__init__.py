"""The demo: sends events through a durable queue and a Spark query, and accounts for every event."""
