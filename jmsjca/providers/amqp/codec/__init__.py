"""How JMS messages are mapped to AMQP 1.0 and back, as Java's JMS clients do it, so that both see the same."""
