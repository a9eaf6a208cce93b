"""The AsyncAPI 3 document of an adapter: listeners and publishers as operations, and the bodies as JSON schemas."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from jmsjca.config.connection_url import ConnectionURL
from jmsjca.config.naming import LOOKUP
from jmsjca.errors import ConfigurationError
from jmsjca.inbound.handler_arguments import body_type, callable_name
from jmsjca.messages.json_text import without_metadata

if TYPE_CHECKING:
    from jmsjca.adapter import ResourceAdapter
    from jmsjca.inbound import Activation
    from jmsjca.outbound.sender import Publisher

__all__ = ["Document", "as_yaml", "document"]

Document = dict[str, Any]
"""A JSON object."""

_PROTOCOLS = {"amqp": "amqp1", "amqps": "amqp1", "stomp": "stomp", "stomp+ssl": "stomps"}
_VERSIONS = {"amqp1": "1.0", "stomp": "1.2", "stomps": "1.2"}
_REFERENCES = "#/components/schemas/{model}"


def document(adapter: "ResourceAdapter", title: str = "jmsjca", version: str = "1.0.0") -> Document:
    """Return the AsyncAPI 3.0 document of the listeners and publishers of an adapter.

    It has a server for each broker and a channel for each destination. Each listener is a receive operation, with the
    JSON schemas of its handler's body and reply; each publisher is a send operation. User names, passwords and URL
    options are left out.

    Args:
        adapter: The adapter. It need not be started.
        title: Title of the application.
        version: Version of the application.

    Raises:
        ConfigurationError: Two classes of bodies have the same name.
    """
    written = _DocumentWriter()
    for activation in adapter.activations:
        written.add(activation, activation.spec.connection_url or adapter.connection_url)
    for publisher in adapter.publishers:
        written.add_publisher(publisher, adapter.connection_url)
    return {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": version},
        "defaultContentType": "application/json",
        "servers": written.servers,
        "channels": written.channels,
        "operations": written.operations,
        "components": {"messages": written.messages, "schemas": written.schemas},
    }


def as_yaml(described: Document) -> str:
    """Return a document as YAML, in the order of its sections.

    Args:
        described: The document.

    Raises:
        ConfigurationError: PyYAML is not installed.
    """
    try:
        import yaml  # an extra
    except ImportError as error:
        raise ConfigurationError('YAML needs PyYAML: pip install "jmsjca[cli]"') from error
    written: str = yaml.safe_dump(described, sort_keys=False, allow_unicode=True, width=120)
    return written


class _DocumentWriter:
    """Collects the parts of a document.

    Attributes:
        servers: Servers, by name.
        channels: Channels, by name.
        operations: Operations, by name.
        messages: Messages, by name.
        schemas: Schemas of classes, by name.
    """

    def __init__(self) -> None:
        self.servers: Document = {}
        self.channels: Document = {}
        self.operations: Document = {}
        self.messages: Document = {}
        self.schemas: Document = {}

    def add(self, activation: "Activation", url: str | None) -> None:
        """Add a listener."""
        kind, address = activation.spec.destination_type, activation.spec.destination
        operation = self._unused(f"receive_{_identifier(address)}")
        message = self._message(f"{operation}_message", body_type(activation.handler))
        self.operations[operation] = {
            "action": "receive",
            **self._on_channel(kind, address, url, message),
            "title": callable_name(activation.handler),
            **_description(activation.handler.__doc__),
            **self._reply(operation, activation.handler),
        }

    def add_publisher(self, publisher: "Publisher[object]", url: str | None) -> None:
        """Add a publisher."""
        kind, address = publisher.destination.kind, publisher.destination.name
        operation = self._unused(f"send_{_identifier(address)}")
        message = self._message(f"{operation}_message", publisher.body_type)
        self.operations[operation] = {
            "action": "send",
            **self._on_channel(kind, address, url, message),
            **_description(publisher.description),
        }

    def _on_channel(self, kind: str, address: str, url: str | None, message: str) -> Document:
        """Add a message to the channel of a destination; return the operation's references to both."""
        channel, server = f"{kind}_{_identifier(address)}", self._server(url)
        entry = self.channels.setdefault(channel, {"address": address, "messages": {}, "servers": []})
        entry["messages"][message] = {"$ref": f"#/components/messages/{message}"}
        if server and {"$ref": f"#/servers/{server}"} not in entry["servers"]:
            entry["servers"].append({"$ref": f"#/servers/{server}"})
        return {
            "channel": {"$ref": f"#/channels/{channel}"},
            "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
        }

    def _reply(self, operation: str, handler: Callable[..., object]) -> Document:
        returned = _return_type(handler)
        if returned in (None, type(None)):
            return {}
        channel, message = f"{operation}_reply", self._message(f"{operation}_reply_message", returned)
        self.channels[channel] = {
            "address": None,
            "messages": {message: {"$ref": f"#/components/messages/{message}"}},
        }
        return {
            "reply": {
                "address": {"location": "$message.header#/replyTo", "description": "The JMSReplyTo of the request."},
                "channel": {"$ref": f"#/channels/{channel}"},
                "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
            }
        }

    def _message(self, name: str, kind: Any) -> str:
        content = {str: "text/plain", bytes: "application/octet-stream"}.get(without_metadata(kind))
        found: Document = {"name": name, **({"contentType": content} if content else {})}
        schema = None if content == "application/octet-stream" else self._schema(kind)
        self.messages[name] = found if schema is None else {**found, "payload": schema}
        return name

    def _schema(self, kind: Any) -> Document | None:
        """Return the JSON schema of a type; None if there is no schema."""
        if kind is None:
            return None
        from pydantic import TypeAdapter  # slow to import
        from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError  # same

        try:
            schema = TypeAdapter(kind).json_schema(ref_template=_REFERENCES)
        except (PydanticSchemaGenerationError, PydanticUserError):  # for example a class with a converter
            return None
        for name, each in schema.pop("$defs", {}).items():
            self._add_schema(name, each)
        title = schema.get("title")
        if schema.get("type") != "object" or not title:
            return schema
        self._add_schema(title, schema)
        return {"$ref": f"#/components/schemas/{title}"}

    def _add_schema(self, name: str, schema: Document) -> None:
        if self.schemas.setdefault(name, schema) != schema:
            raise ConfigurationError(
                f"Two classes of bodies with the name {name!r} have different schemas: the document cannot name both. "
                "Rename one of them."
            )

    def _server(self, url: str | None) -> str | None:
        if url is None or url.startswith(LOOKUP):
            return None
        parsed = ConnectionURL.parse(url)
        protocol = _PROTOCOLS.get(parsed.protocol, parsed.protocol)
        host = ",".join(map(str, parsed.addresses)) or parsed.path
        described = {"host": host, "protocol": protocol, **_version(protocol)}
        for name, server in self.servers.items():
            if server == described:
                return name
        name = f"broker_{len(self.servers) + 1}"
        self.servers[name] = described
        return name

    def _unused(self, name: str) -> str:
        return name if name not in self.operations else f"{name}_{len(self.operations) + 1}"


def _version(protocol: str) -> Document:
    return {"protocolVersion": _VERSIONS[protocol]} if protocol in _VERSIONS else {}


def _identifier(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


def _description(written: str | None) -> Document:
    text = (written or "").strip()
    return {"description": text} if text else {}


def _return_type(handler: Callable[..., object]) -> Any:
    try:
        hints: Mapping[str, Any] = get_type_hints(handler, include_extras=True)
    except (NameError, TypeError, AttributeError):  # an annotation for type checkers only, or no annotation
        return None
    return hints.get("return")
