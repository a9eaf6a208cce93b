"""JMS messages as AMQP 1.0 bytes and back, mapped as Java's JMS clients do it."""
