"""The links of AMQP 1.0: receivers, senders, the transaction coordinator."""
