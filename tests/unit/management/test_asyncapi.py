"""The AsyncAPI document of an adapter: valid for an independent model, complete, and without secrets."""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, Field

from jmsjca import Message, ResourceAdapter, Session, Topic
from jmsjca.__main__ import run
from jmsjca.errors import ConfigurationError
from jmsjca.inbound import Depends
from jmsjca.management.asyncapi import as_yaml, document
from jmsjca.management.worker import load_adapter


@dataclass
class Line:
    fruit: str
    count: int = 1


class Order(BaseModel):
    number: int
    lines: list[Line]


@pytest.fixture
def adapter():
    adapter = ResourceAdapter("amqps://ann:secret@one.example,two.example:5673?heartbeat=5")

    @adapter.listener("orders.new")
    def on_order(order: Order, session: Session, price: Annotated[int, Depends(lambda: 1)]) -> dict[str, int]:
        """Ship an order."""
        return {}

    @adapter.listener(Topic("prices"), concurrency_mode="sync", batch_size=3)
    def on_prices(lines: Sequence[Line]) -> None: ...

    @adapter.listener("raw", connection_url="embedded:///var/broker.db")
    def on_raw(body: bytes) -> str: ...

    @adapter.listener("orders.new")
    def watch(message: Message) -> None: ...

    adapter.publisher(Topic("prices"), Line, "A changed price.")
    adapter.publisher("invoices", Order)
    adapter.publisher("notes", str)
    return adapter


def followed(found, reference):
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def references(value):
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_it_is_valid_for_an_independent_model(adapter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the model about the names of its own fields
        from asyncapi3.models import AsyncAPI3
    read = AsyncAPI3.model_validate(document(adapter, "shop", "2.0"))
    assert (read.asyncapi, read.info.title, read.info.version) == ("3.0.0", "shop", "2.0")
    with pytest.raises(ValueError, match=r"info\.title"):
        AsyncAPI3.model_validate({"info": {}})


@pytest.fixture(scope="session")
def schema():
    """The published JSON schema, which ``make`` installs beside the packages of Python."""
    folder = Path(sys.prefix) / "npm" / "node_modules" / "@asyncapi" / "specs" / "schemas"
    if not folder.exists() and not os.environ.get("CI"):
        pytest.skip("the JSON schema of AsyncAPI is missing: make .venv/.dev installs it")
    return json.loads((folder / "3.0.0-without-$id.json").read_text())


def complaints(schema, found):
    return [error.message for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(found)]


def test_it_is_valid_by_the_published_schema(adapter, schema):
    found = document(adapter)
    assert complaints(schema, found) == []
    assert complaints(schema, yaml.safe_load(as_yaml(found))) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda found: found.pop("info"),
        lambda found: found["operations"]["send_invoices"].update(action="sends"),
        lambda found: found["operations"]["receive_orders_new"].pop("channel"),
        lambda found: found["servers"]["broker_1"].pop("protocol"),
        lambda found: found["channels"]["queue_orders_new"].update(address=1),
        lambda found: found.update(asyncapi="2.0.0"),
    ],
)
def test_the_schema_finds_a_spoiled_document(adapter, schema, spoil):
    found = document(adapter)
    spoil(found)
    assert complaints(schema, found)


def test_a_publisher_is_a_send_operation(adapter):
    found = document(adapter)
    operation = found["operations"]["send_prices"]
    assert (operation["action"], operation["description"]) == ("send", "A changed price.")
    assert operation["channel"] == found["operations"]["receive_prices"]["channel"]
    assert set(found["channels"]["topic_prices"]["messages"]) == {"receive_prices_message", "send_prices_message"}
    messages = found["components"]["messages"]
    assert messages["send_invoices_message"]["payload"] == {"$ref": "#/components/schemas/Order"}
    assert messages["send_notes_message"]["contentType"] == "text/plain"
    assert "description" not in found["operations"]["send_notes"]


def test_every_reference_leads_somewhere(adapter):
    found = document(adapter)
    named = set(references(found))
    assert len(named) > 10
    assert all(followed(found, reference) is not None for reference in named)


def test_a_listener_is_an_operation_with_the_schema_of_its_body(adapter):
    found = document(adapter)
    operation = found["operations"]["receive_orders_new"]
    [message] = operation["messages"]
    assert followed(found, operation["channel"]["$ref"])["address"] == "orders.new"
    assert (operation["action"], operation["description"]) == ("receive", "Ship an order.")
    payload = followed(found, followed(found, followed(found, message["$ref"])["$ref"])["payload"]["$ref"])
    assert payload["required"] == ["number", "lines"]
    assert found["components"]["schemas"]["Line"]["properties"]["count"]["default"] == 1


def test_replies_batches_and_other_bodies(adapter):
    found = document(adapter)
    messages = found["components"]["messages"]
    assert messages["receive_orders_new_reply_message"]["payload"]["additionalProperties"] == {"type": "integer"}
    assert messages["receive_prices_message"]["payload"] == {"$ref": "#/components/schemas/Line"}
    assert messages["receive_raw_message"] == {
        "name": "receive_raw_message",
        "contentType": "application/octet-stream",
    }
    assert messages["receive_raw_reply_message"]["contentType"] == "text/plain"
    assert "reply" not in found["operations"]["receive_prices"]
    assert found["channels"]["topic_prices"]["address"] == "prices"
    assert "payload" not in messages["receive_orders_new_4_message"]  # of the second listener, which takes any message


def test_servers_are_named_without_secrets(adapter):
    found = document(adapter)
    assert [server["host"] for server in found["servers"].values()] == [
        "one.example,two.example:5673",
        "/var/broker.db",
    ]
    assert found["servers"]["broker_1"]["protocol"] == "amqp1"
    assert not {"secret", "ann", "heartbeat"} & set(json.dumps(found).replace('"', " ").replace("@", " ").split())
    assert "secret" not in json.dumps(found)


def test_two_classes_of_one_name_are_refused():
    adapter = ResourceAdapter("embedded://x")
    for fields in ({"a": int}, {"b": str}):
        kind = dataclass(type("Item", (), {"__annotations__": fields}))

        def handler(item) -> None: ...

        handler.__annotations__["item"] = kind
        adapter.listener("items")(handler)
    with pytest.raises(ConfigurationError, match="'Item' have different schemas"):
        document(adapter)


def test_the_command_writes_the_document_of_an_imported_adapter(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_service.py").write_text(
        "import jmsjca\nadapter = jmsjca.ResourceAdapter('embedded://x')\n"
        "@adapter.listener('orders')\ndef on_order(body: str) -> None: ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(["docs", "my_service:adapter", "--title", "shop"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["info"]["title"], list(written["operations"])) == ("shop", ["receive_orders"])


def test_the_command_writes_yaml(tmp_path, monkeypatch, capsys):
    (tmp_path / "yaml_service.py").write_text("import jmsjca\nadapter = jmsjca.ResourceAdapter('embedded://x')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(["docs", "yaml_service:adapter", "--title", "größe", "--yaml"]) == 0
    written = capsys.readouterr().out
    assert "  title: größe\n" in written
    assert yaml.safe_load(written)["info"]["title"] == "größe"


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [("no_such_module:a", "cannot be imported"), ("json:loads", "no ResourceAdapter 'loads'"), ("x.toml", "x.toml")],
)
def test_a_wrong_reference_is_an_error(reference, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        load_adapter(reference)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (Annotated[int, Field(gt=0)], {"type": "integer", "exclusiveMinimum": 0}),
        (Annotated[str, Field(max_length=3)], {"type": "string", "maxLength": 3}),
        (Annotated[int, Field(gt=0)] | None, {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]}),
        (list[Annotated[int, Field(gt=0)]], {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}}),
    ],
)
@pytest.mark.parametrize("role", ["body", "batch", "reply", "publisher"])
def test_constraints_of_an_annotated_body_are_in_its_schema(role, body, expected):
    adapter = ResourceAdapter("embedded://x")

    def on_one(body: body): ...

    def on_batch(bodies: Sequence[body]): ...

    def with_reply(message: Message) -> body: ...

    if role == "publisher":
        adapter.publisher("q", body)
    else:
        options = {"concurrency_mode": "sync", "batch_size": 3} if role == "batch" else {}
        adapter.listener("q", **options)({"body": on_one, "batch": on_batch, "reply": with_reply}[role])
    messages = document(adapter)["components"]["messages"].values()
    [payload] = [each["payload"] for each in messages if "payload" in each]
    assert payload == expected


def test_an_annotated_text_or_bytes_has_its_content_type():
    adapter = ResourceAdapter("embedded://x")

    @adapter.listener("q")
    def on_text(body: Annotated[str, Field(max_length=3)]): ...

    @adapter.listener("q")
    def on_bytes(body: Annotated[bytes, Field(max_length=3)]): ...

    types = [(each["contentType"], "payload" in each) for each in document(adapter)["components"]["messages"].values()]
    assert types == [("text/plain", True), ("application/octet-stream", False)]


def test_an_annotated_class_shares_the_schema_of_the_class():
    adapter = ResourceAdapter("embedded://x")

    @adapter.listener("q")
    def on_order(order: Annotated[Order, Field(description="The first one.")]): ...

    @adapter.listener("q")
    def on_any(order: Annotated[Order, "for people"]): ...

    adapter.publisher("q", Order)
    described = document(adapter)["components"]
    first, *others = [each["payload"] for each in described["messages"].values()]
    reference = {"$ref": "#/components/schemas/Order"}
    assert [first, *others] == [{**reference, "description": "The first one."}, reference, reference]
    assert "description" not in described["schemas"]["Order"]
