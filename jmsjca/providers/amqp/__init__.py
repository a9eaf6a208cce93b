"""The provider of ``amqp://`` and ``amqps://``: AMQP 1.0 on proton's protocol engine."""
