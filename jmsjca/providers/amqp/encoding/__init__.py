"""The types of AMQP 1.0 as bytes: values are read and written by tables, within bounds."""
