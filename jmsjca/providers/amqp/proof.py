"""The proof that a broker has handled what was acknowledged."""

from concurrent.futures import Future

from jmsjca.providers.amqp.settling import SettlingConsumer

__all__ = ["prove"]


def prove(consumer: SettlingConsumer, proof: "Future[None]") -> None:
    """Ask for it. On the engine's thread.

    Args:
        consumer: Who received what was acknowledged.
        proof: Done when the broker has handled all that was acknowledged for this consumer before.
    """
    consumer.round_trip().add_done_callback(lambda answer: _pass_on(answer, proof))


def _pass_on(answer: "Future[bool]", proof: "Future[None]") -> None:
    error = answer.exception()
    if error is None:
        proof.set_result(None)
    else:
        proof.set_exception(error)
