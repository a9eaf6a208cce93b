"""A program of a user in which type checkers must find each line that ends with the comment ``# error``, and no other.

A formatter must not break these lines.
"""
# fmt: off

from jmsjca import ActivationSpec, BytesMessage, ConnectionFactory, Message, Queue, ResourceAdapter, TextMessage

adapter = ResourceAdapter("embedded://typed")
adapter.listener("q", concurency_mode="cc")  # error
adapter.listener("q", concurrency_mode="sink")  # error
adapter.listener("q", concurrency_mode="sync", batchsize=10)  # error
adapter.listener("q", batch_size="ten", concurrency_mode="sync")  # error
adapter.listener("q", hold_until_ack=None, concurrency_mode="cc")  # error
adapter.listener("q", transaction="global")  # error
adapter.listener("q", acknowledge_mode="CLIENT")  # error
adapter.listener("q", selector_variables={"region": object()})  # error
adapter.listener(5)  # error
adapter.listener()  # error
ActivationSpec()  # error
ActivationSpec(destination="q", concurency_mode="cc")  # error
ActivationSpec(destination="q", concurrency_mode="sink")  # error
ActivationSpec(destination="q", subscription_durability="durable")  # error
ActivationSpec(destination="q", endpoint_pool_size=3)  # error
ResourceAdapter("embedded://typed", mbean_object_name=1)  # error
ResourceAdapter("embedded://typed", mbean_server_domain=1)  # error
adapter.publisher("q", str).send(3)  # error
adapter.publisher("q", str).send("text", prority=3)  # error


@adapter.listener("q")
def on_message(message: Message) -> str:
    """Return a reply."""
    return str(message.body)


wrong_type: int = on_message(TextMessage("x"))  # error


def bodies(text: TextMessage, data: BytesMessage) -> None:
    """Use bodies as the wrong types."""
    text.body.decode()  # error
    data.body.encode()  # error
    text.body = b"bytes"  # error
    data.body = "text"  # error


with ConnectionFactory("embedded://typed").create_connection() as connection:
    consumer = connection.create_session().create_consumer(Queue("q"))
    print(consumer.receive(timeout=1).body)  # error
    print(consumer.receive().boddy)  # error
    print(consumer.receive(timeout="1"))  # error
