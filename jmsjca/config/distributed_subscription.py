"""Subscription names ``jmsjca://?distribution=1…``: durable subscriptions that processes share by means of a queue."""

from dataclasses import dataclass
from typing import Self

from jmsjca.arguments import did_you_mean
from jmsjca.config.connection_url import ConnectionURL
from jmsjca.errors import InvalidOptionError, excerpt

__all__ = ["DistributedSubscription"]

_SCHEME = "jmsjca://"
_SWITCHES = ("distribution", "distributed")  # the manual uses both
_KEYS = {name: name for name in (*_SWITCHES, "subscribername", "queue", "mbeanname", "batchsize")}
_DIGITS = 10  # of Java's int


@dataclass(frozen=True, slots=True)
class DistributedSubscription:
    """A parsed subscription name: one process forwards the subscription to a queue, from which all processes consume.

    Attributes:
        subscriber_name: The name of the durable subscription.
        queue: The name of the queue; None derives it from topic and subscription, see `queue_name`.
        mbean_name: The name of the topic reader's management bean; None derives it from the name of the activation's.
        batch_size: The number of messages that are forwarded in one unit of work.
    """

    subscriber_name: str
    queue: str | None = None
    mbean_name: str | None = None
    batch_size: int = 10

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a subscription name.

        Args:
            text: ``jmsjca://?distribution=1&subscribername=s``, also without the question mark, and optionally with
                ``queue``, ``mbeanname`` and ``batchsize``.

        Returns:
            The parsed name; None for the name of an ordinary subscription.

        Raises:
            InvalidURLError: A pair does not have the form key=value.
            InvalidOptionError: A key is unknown or missing, or a value is invalid.
        """
        options = _options(text)
        switches = {options[name] for name in _SWITCHES if name in options}
        if switches <= {"0"}:
            return None
        if switches != {"1"}:
            raise InvalidOptionError(f"distribution is 0 or 1, not {excerpt(min(switches - {'1'}))!r}.")
        for name in options:
            if name not in _KEYS:
                raise InvalidOptionError(
                    f"A distributed subscription has no option {excerpt(name)!r} {did_you_mean(name.lower(), _KEYS)}."
                )
        if not options.get("subscribername"):
            raise InvalidOptionError("A distributed subscription needs subscribername=…, the name of the subscription.")
        return cls(
            options["subscribername"],
            options.get("queue") or None,
            options.get("mbeanname") or None,
            _batch_size(options.get("batchsize") or "10"),
        )

    def queue_name(self, topic: str) -> str:
        """Return the name of the queue from which all processes consume.

        Args:
            topic: The name of the topic.
        """
        return self.queue or f"LOADBALQ_{topic}_{self.subscriber_name}"

    def topic_mbean_name(self, mbean_name: str | None) -> str | None:
        """Return the name of the topic reader's management bean; None if it has no bean.

        Args:
            mbean_name: The name of the activation's bean; None if it has no bean.
        """
        return self.mbean_name or (f"{mbean_name}-LOADBALQ" if mbean_name else None)


def _options(text: str) -> dict[str, str]:
    if not text.startswith(_SCHEME):
        return {}
    return ConnectionURL.parse(f"{_SCHEME}?{text.removeprefix(_SCHEME).removeprefix('?')}").query


def _batch_size(text: str) -> int:
    size = int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0
    if size < 1:
        raise InvalidOptionError(f"batchsize is a number of messages from 1 on, not {excerpt(text)!r}.")
    return size
