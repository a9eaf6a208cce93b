"""The brokers that speak AMQP 1.0: one module each, with names, capabilities and management."""
