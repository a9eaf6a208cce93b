"""The demo: events through a durable queue and a Spark query, with an account of every one of them."""
