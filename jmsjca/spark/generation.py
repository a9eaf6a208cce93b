"""Generations: one checkpoint's staged files, with a name and an origin.

The name of a generation has the guarantee, so that it never changes.

With ``guarantee=exactly-once`` the store decides which of several attempts at a partition is the first. Without such a
store, with ``guarantee=at-least-once``, this happens:

- Each attempt stages its messages in a file of its own, unless it finds one of another attempt. Files stay as they are.
- It settles the messages only if the epoch is not committed then. The driver records that an epoch is committed before
  it lists the files of the epoch. So either the driver sees the file, or the attempt settles nothing.
- If a partition has several files, the driver does not know which of them Spark has read. The next epoch has the rows
  of all of them: some a second time, none never.
- Messages are not recognised by their keys. A file that has a key may be one that is never read.
"""

import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Self

__all__ = ["DEFAULT_PORTS", "Origin", "is_at_least_once", "new_generation"]

DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671, "stomp": 61613, "stomp+ssl": 61614}

_AT_LEAST_ONCE = "atleastonce_"
_SOURCE = re.compile(r"(.*) at ([\w+.-]+)://([^/]*)(.*)", re.DOTALL)


def new_generation(*, at_least_once: bool = False) -> str:
    """Return a new name.

    Args:
        at_least_once: True for ``guarantee=at-least-once``.
    """
    return f"{_AT_LEAST_ONCE if at_least_once else ''}{uuid.uuid4().hex}"


def is_at_least_once(gen: str) -> bool:
    """Return True for a generation with ``guarantee=at-least-once``."""
    return gen.startswith(_AT_LEAST_ONCE)


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of the staged messages of a generation.

    Texts that name the same destinations and brokers are equal: their order, the case of hosts, a default port and a
    slash at the end do not matter.

    Attributes:
        source: The destination and the broker, without credentials.
        name: The name that the query has in a shared staging location; empty if it has none.
        identity: The source in the one form that is compared.
    """

    source: str = field(compare=False)
    name: str = ""
    identity: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", _in_one_form(self.source))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the origin that `str` wrote.

        Raises:
            ValueError: The text is no such one.
        """
        found = json.loads(text)
        return cls(str(found["source"]), str(found["name"]))

    @property
    def described(self) -> str:
        """The source and the name, for messages."""
        return f"{self.source} (stagingName {self.name!r})" if self.name else self.source

    def __str__(self) -> str:
        return json.dumps({"source": self.source, "name": self.name})


def _in_one_form(source: str) -> str:
    match = _SOURCE.fullmatch(source)
    if match is None:
        return source
    destinations, protocol, hosts, path = match.groups()
    if hosts:  # a file has none
        path = path.rstrip("/")
        hosts = ",".join(sorted(_with_port(host.lower(), DEFAULT_PORTS.get(protocol)) for host in hosts.split(",")))
    return f"{', '.join(sorted(re.split(', (?=queue:)', destinations)))} at {protocol}://{hosts}{path}"


def _with_port(host: str, port: int | None) -> str:
    return host if port is None or re.search(r":\d+\Z", host) else f"{host}:{port}"
