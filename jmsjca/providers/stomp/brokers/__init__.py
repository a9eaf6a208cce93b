"""The brokers that speak STOMP: one module each, with its dialect and capabilities."""
