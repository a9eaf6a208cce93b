"""The brokers: for each what both protocols share, and its ways over AMQP 1.0 and over STOMP."""
