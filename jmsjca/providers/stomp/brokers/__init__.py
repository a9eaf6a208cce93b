"""The brokers that speak STOMP: one module each, with its dialect, capabilities and gaps."""
