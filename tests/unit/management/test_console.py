"""The console's pages and actions, over an embedded broker, as a browser asks for them."""

import html
import re
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from jmsjca import BytesMessage, ConnectionFactory, MapMessage, ObjectMessage, Queue, ResourceAdapter, TextMessage
from jmsjca.management.console import Console
from tests.unit.management.test_dead_letters import drain, fail, letter, listen, send

HOSTILE = "<script>alert('x')</script>\x1b[2J\u202e\" onload=x & {{ 7*7 }}"


@pytest.fixture
def url(tmp_path):
    return f"embedded://{tmp_path}/broker.db"


def browser(console, **options):
    """Return a client that has opened the address with the token."""
    client = TestClient(console, base_url="http://127.0.0.1:8321", **options)
    assert client.get("/", params={"token": console.token}).status_code == 200
    return client


@pytest.fixture
def reader(url):
    return browser(Console(url))


@pytest.fixture
def writer(url):
    return browser(Console(url, writable=True))


def text(response, status=200):
    """Return what a page shows, without its tags."""
    assert response.status_code == status, response.text
    shown = html.unescape(re.sub(r"<[^>]+>", " ", response.text.partition("<main")[2]))
    return " ".join(shown.split())


def links(response):
    return [html.unescape(each) for each in re.findall(r'href="([^"]*)"', response.text)]


class Form(HTMLParser):
    """The fields of the last form of a page that has any of the method POST."""

    def __init__(self, response):
        super().__init__()
        self.fields = {}
        self.actions = []
        self.feed(response.text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "form" and found.get("method") == "post":
            self.actions.append(found["action"])
        if tag == "input" and found.get("type") == "hidden":
            self.fields[found["name"]] = found["value"]


def submit(client, page, action, **fields):
    """Submit the form of a page, and then the form that confirms it; return both answers."""
    plan = client.post(action, data={**Form(page).fields, **fields})
    if plan.status_code != 200 or not Form(plan).actions:
        return plan, plan
    return plan, client.post(action, data=Form(plan).fields)


def test_every_page_of_an_adapter_is_shown(url):
    adapter = ResourceAdapter(url)

    @adapter.listener("orders", selector="shop = 'Bern'", redelivery_handling="3:25; 5:move(queue:dlq.$)")
    def handle(message):
        del message

    client = browser(Console(adapter))
    with adapter:
        adapter.start(wait=60)
        shown = text(client.get("/"))
        assert "idle" in shown
        assert "(orders)" in shown
        shown = text(client.get("/activation?n=0"))
        assert "3-4 deliver after 25 ms" in shown
        assert "5 and later move to queue:dlq.orders" in shown
        assert "selector shop = 'Bern'" in shown
    assert "down" in text(client.get("/"))
    assert "no activation 1" in text(client.get("/activation?n=1"), 400)


def test_a_console_of_a_broker_alone_says_where_activations_are(reader):
    assert "Mount it" in text(reader.get("/"))
    assert "no activation" in text(reader.get("/activation"), 400)


def test_destinations_have_depths_and_are_searched_and_paged(url, reader):
    with ConnectionFactory(url).create_connection() as connection, connection.create_session(True) as session:
        for number in range(60):
            session.create_producer(Queue(f"queue.{number:02}")).send(TextMessage("x"))
        session.commit()
    page = reader.get("/destinations", params={"search": "QUEUE."})
    assert "60 found" in text(page)
    assert "Scheduled Consumers Look at queue.00 queue 1 0 0 0" in text(page)
    assert "queue.50" not in text(page)
    [following] = [link for link in links(page) if "page=2" in link]
    assert "queue.59 queue 1 0 0" in text(reader.get(following))
    assert "1 found" in text(reader.get("/destinations?search=e.07"))


def test_rates_are_measured_if_asked(url, reader):
    send(url, TextMessage("x"), to="orders")
    assert "Messages per second, measured for a second" in text(reader.get("/destinations"))
    assert "Went per second Look at orders queue 1 0 0 0 0.0 0.0" in text(reader.get("/destinations?rates=yes"))


def test_messages_are_searched_with_a_selector_and_paged(url, reader):
    send(url, *(TextMessage("x", properties={"number": number}) for number in range(60)), to="orders")
    page = reader.get("/messages?queue=orders")
    assert text(page).count("ID:") == 50
    [following] = [link for link in links(page) if "page=2" in link]
    assert text(reader.get(following)).count("ID:") == 10
    assert text(reader.get("/messages", params={"queue": "orders", "selector": "number >= 58"})).count("ID:") == 2
    assert "No messages found" in text(reader.get("/messages", params={"queue": "orders", "selector": "number = 99"}))
    assert len(drain(url, "orders")) == 60


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("queue=orders&selector=%28", 400, "selector"),
        ("queue=orders&page=0", 400, "page='0'"),
        ("queue=orders&page=9999999999999999999999", 400, "page="),
        ("queue=orders&page=%D9%A3", 400, "page="),
    ],
)
def test_a_wrong_question_is_an_error_with_its_reason(reader, query, status, reason):
    assert reason in text(reader.get(f"/messages?{query}"), status)


def test_a_broker_that_cannot_be_reached_is_an_error():
    client = browser(Console("stomp://127.0.0.1:1"))
    assert "127.0.0.1" in text(client.get("/capabilities"), 502)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (TextMessage("a pear\nand a fig"), "a pear and a fig"),
        (BytesMessage(b"\x00\x01pear"), "000000 00 01 70 65 61 72 ..pear"),
        (MapMessage({"fruit": "pear", "count": 3}), "count"),
        (ObjectMessage({"a": 1}), "000000 80 0"),
        (TextMessage(), "The message has no body"),
    ],
)
def test_a_body_is_shown_by_its_type(url, reader, message, shown):
    message.correlation_id = "the order"
    message.properties["shop"] = "Bern"
    send(url, message, to="orders")
    [link] = [link for link in links(reader.get("/messages?queue=orders")) if "/message?" in link]
    page = text(reader.get(link))
    assert shown in page
    assert "correlation id the order" in page
    assert "shop str Bern" in page


def test_a_long_body_is_cut(url, reader):
    send(url, TextMessage("pear " * 200_000), to="orders")
    [link] = [link for link in links(reader.get("/messages?queue=orders")) if "/message?" in link]
    page = reader.get(link)
    assert "Size: 1000000; only the beginning is shown" in text(page)
    assert len(page.content) < 100_000


def test_a_pickle_is_not_loaded(url, reader):
    message = ObjectMessage.from_pickled(b"cbuiltins\nexit\n(I1\ntR.")
    send(url, message, to="orders")
    [link] = [link for link in links(reader.get("/messages?queue=orders")) if "/message?" in link]
    assert "cbuiltins.exit." in text(reader.get(link))


def test_a_hostile_message_is_escaped_on_every_page(url, writer):
    message = letter(HOSTILE)
    message.correlation_id = message.type = HOSTILE
    send(url, message, to="dlq.orders")
    listed = [writer.get(f"/{page}?queue=dlq.orders") for page in ("messages", "dead-letters")]
    [link, *_] = [link for link in links(listed[0]) if "/message?" in link]
    plan = writer.post("/drop", data={**Form(listed[1]).fields, "all": "yes"})
    for response in (*listed, writer.get(link), plan):
        assert response.status_code == 200
        assert "<script" not in response.text
        assert "\x1b" not in response.text
        assert "\u202e" not in response.text
        assert '" onload' not in response.text
    assert "&lt;script&gt;" in writer.get(link).text


@pytest.mark.parametrize("path", ["/messages", "/dead-letters", "/destinations", "/message", "/nothing"])
def test_a_hostile_query_is_escaped(reader, path):
    shown = reader.get(path, params=dict.fromkeys(("queue", "search", "selector", "id"), HOSTILE)).text
    assert "<script" not in shown
    assert '" onload' not in shown


def test_a_broken_listener_is_found_mended_and_its_message_replayed(url, writer):
    send(url, letter("a pear"))
    listen(url, fail, 1)
    [queue] = [link for link in links(writer.get("/destinations?search=dlq")) if link.startswith("/dead-letters?")]
    listed = writer.get(queue)
    assert "queue:orders" in text(listed)
    [link] = [link for link in links(listed) if "/message?" in link]
    page = writer.get(link)
    assert "reason ValueError" in text(page)
    assert "no price for a pear" in text(page)
    assert "in fail" in text(page)
    plan, done = submit(writer, page, "/replay")
    assert "1 message, 1 planned" in text(plan)
    assert "1 message, 1 done" in text(done)
    got = []
    listen(url, lambda message: got.append(message.body), 1)
    assert got == ["a pear"]


def test_chosen_letters_are_replayed_elsewhere_and_the_others_stay(url, writer):
    send(url, *map(letter, "xyz"), to="dlq.orders")
    page = writer.get("/dead-letters?queue=dlq.orders")
    ids = re.findall(r'name="id" value="([^"]*)"', page.text)
    plan = writer.post("/replay", data={**Form(page).fields, "id": ids[:2], "to": "repaired"})
    done = writer.post("/replay", data={**Form(page).fields, "id": ids[:2], "to": "repaired", "confirm": "yes"})
    assert "2 messages, 2 planned" in text(plan)
    assert "2 messages, 2 done" in text(done)
    assert [each.body for each in drain(url, "repaired")] == ["x", "y"]
    assert [each.body for each in drain(url, "dlq.orders")] == ["z"]


def test_all_letters_that_a_selector_matches_are_dropped(url, writer):
    send(url, letter("x"), letter("y"), to="dlq.orders")
    page = writer.get("/dead-letters", params={"queue": "dlq.orders", "selector": "shop = 'x'"})
    _, done = submit(writer, page, "/drop", all="yes")
    assert "1 message, 1 done" in text(done)
    assert [each.body for each in drain(url, "dlq.orders")] == ["y"]


def test_a_plan_changes_nothing(url, writer):
    send(url, letter("x"), to="dlq.orders")
    page = writer.get("/dead-letters?queue=dlq.orders")
    assert "Plan; nothing is changed yet" in text(writer.post("/drop", data={**Form(page).fields, "all": "yes"}))
    assert len(drain(url, "dlq.orders")) == 1


def test_an_action_without_messages_is_refused(url, writer):
    send(url, letter("x"), to="dlq.orders")
    page = writer.get("/dead-letters?queue=dlq.orders")
    assert "Choose messages" in text(writer.post("/drop", data=Form(page).fields), 400)
    assert "Choose messages" in text(writer.post("/drop", data={**Form(page).fields, "confirm": "yes"}), 400)
    assert len(drain(url, "dlq.orders")) == 1


def test_a_letter_without_an_origin_needs_a_destination(url, writer):
    send(url, TextMessage("x"), to="dlq.orders")
    page = writer.get("/dead-letters?queue=dlq.orders")
    assert "no record of its origin" in text(submit(writer, page, "/replay", all="yes")[1], 400)


def test_a_console_that_only_reads_has_no_actions(url, reader):
    send(url, letter("x"), to="dlq.orders")
    page = reader.get("/dead-letters?queue=dlq.orders")
    assert "<button>Replay" not in page.text
    csrf = Form(browser(Console(url, token=None, writable=True)).get("/dead-letters?queue=dlq.orders")).fields["csrf"]
    for action in ("/replay", "/drop", "/edit", "/mend"):
        assert reader.post(action, data={"queue": "dlq.orders", "all": "yes", "csrf": csrf}).status_code == 403
    assert len(drain(url, "dlq.orders")) == 1


def test_a_console_that_only_reads_has_no_actions_even_with_the_right_token(url):
    token = "a token of this test".replace(" ", "-")
    written = browser(Console(url, token=token, writable=True))
    send(url, letter("x"), to="dlq.orders")
    fields = Form(written.get("/dead-letters?queue=dlq.orders")).fields
    answer = browser(Console(url, token=token)).post("/drop", data={**fields, "all": "yes", "confirm": "yes"})
    assert "no such page" in text(answer, 404)
    assert len(drain(url, "dlq.orders")) == 1


def test_capabilities_are_shown(reader):
    assert "atomic yes" in text(reader.get("/capabilities"))


def test_a_mounted_console_keeps_its_links_below_its_path(url):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    console = Console(ConnectionFactory(url), hosts=["ops.example.org"])
    client = TestClient(Starlette(routes=[Mount("/jms", console)]), base_url="https://ops.example.org")
    page = client.get("/jms/", params={"token": console.token})
    assert page.url.path == "/jms/"
    assert all(link.startswith(("/jms/", "#")) for link in links(page))
    assert client.get("/jms/capabilities").status_code == 200
    assert client.get("/jms/console.css").headers["content-type"].startswith("text/css")


class Outline(HTMLParser):
    """What a screen reader goes by."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.labels, self.unlabelled = [], [], set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        if tag == "label":
            self.labels.add(found["for"])
        if tag in {"input", "textarea"} and found.get("type") != "hidden" and "aria-label" not in found:
            self.unlabelled.append(found.get("id"))
        if tag == "th":
            assert found["scope"] in {"col", "row"}


@pytest.mark.parametrize("path", ["/", "/destinations", "/messages", "/dead-letters", "/capabilities", "/message"])
def test_a_page_can_be_used_with_a_screen_reader(url, writer, path):
    send(url, letter("x"), to="dlq.orders")
    if path == "/message":
        [path] = [link for link in links(writer.get("/messages?queue=dlq.orders")) if "/message?" in link]
    elif path in {"/messages", "/dead-letters"}:
        path += "?queue=dlq.orders"
    page = writer.get(path).text
    outline = Outline(page)
    assert '<html lang="en">' in page
    assert {"header", "nav", "main", "title"} <= set(outline.tags)
    assert outline.tags.count("h1") == 1
    assert set(outline.unlabelled) <= outline.labels
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.tags.count("caption") == outline.tags.count("table")
    assert 'href="#content"' in page
    assert "style=" not in page
    assert "<script" not in page


def test_only_a_console_of_an_adapter_has_live_numbers(reader):
    assert "no live numbers" in text(reader.get("/events"), 400)
    assert "EventSource" in reader.get("/live.js").text
    assert reader.get("/live.js").headers["content-type"].startswith("text/javascript")


def test_the_style_has_both_colour_schemes(reader):
    assert "prefers-color-scheme: dark" in reader.get("/console.css").text


def test_a_message_that_is_gone_is_an_error(url, reader):
    send(url, TextMessage("x"), to="orders")
    assert "has no message" in text(reader.get("/message?queue=orders&id=ID:gone"), 400)


def message_page(client, queue):
    """Return the page of the first message of a queue."""
    [link, *_] = [link for link in links(client.get(f"/messages?queue={queue}")) if "/message?" in link]
    return client.get(link)


def test_a_message_is_edited_in_its_queue(url, writer):
    send(url, TextMessage("a paer", properties={"shop": "Bern", "n": 3}, correlation_id="c"), to="orders")
    page = message_page(writer, "orders")
    assert "a paer</textarea>" in page.text
    fields = {"body": "a pear\r\nand a fig", "properties": "city=Bern\r\nzip=3000\r\n", "removed": " shop "}
    plan, done = submit(writer, page, "/edit", **fields)
    assert "1 message, 1 planned" in text(plan)
    assert "1 message, 1 done" in text(done)
    [found] = drain(url, "orders")
    assert (found.body, found.correlation_id) == ("a pear\nand a fig", "c")
    assert dict(found.properties) == {"n": 3, "city": "Bern", "zip": "3000"}


def test_a_dead_letter_is_edited_and_replayed(url, writer):
    send(url, letter("a paer"), to="dlq.orders")
    page = message_page(writer, "dlq.orders")
    _, done = submit(writer, page, "/mend", body="a pear")
    assert "queue:orders done" in text(done)
    [found] = drain(url, "orders")
    assert (found.body, found.properties["_JMSJCA_ReplayCount"]) == ("a pear", 1)
    assert drain(url, "dlq.orders") == []


def test_bytes_that_are_a_text_are_edited_as_one(url, writer):
    send(url, BytesMessage("grün".encode()), to="orders")
    page = message_page(writer, "orders")
    submit(writer, page, "/edit", body="blau")
    assert [each.get_body(bytes) for each in drain(url, "orders")] == [b"blau"]


def content(message):
    return message.pickled if isinstance(message, ObjectMessage) else message.get_body(object)


@pytest.mark.parametrize(
    "message",
    [
        MapMessage({"fruit": "a pear"}),
        BytesMessage(b"\xff\xfe"),
        TextMessage("x\r\ny"),
        TextMessage("x\0y"),
        TextMessage("x" * 20_000),
        ObjectMessage({"a": 1}),
    ],
    ids=["map", "bytes", "CR", "NUL", "long", "object"],
)
def test_properties_of_other_messages_are_edited_and_the_body_stays(url, writer, message):
    send(url, message, to="orders")
    page = message_page(writer, "orders")
    assert "only the properties can be edited" in text(page)
    submit(writer, page, "/edit", body="another", properties="shop=Bern")
    [found] = drain(url, "orders")
    assert found.properties["shop"] == "Bern"
    assert type(found) is type(message)
    assert content(found) == content(message)


@pytest.mark.parametrize("action", ["/edit", "/mend"])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"body": "a pear"}, "nothing to edit"),
        ({"body": "x", "properties": "no equals"}, "NAME=VALUE"),
        ({"body": "x", "id": ["ID:1", "ID:2"]}, "One message at a time"),
        ({"body": "x", "id": "ID:gone"}, "has no message"),
    ],
)
def test_a_wrong_edit_changes_nothing(url, writer, action, fields, reason):
    send(url, letter("a pear"), to="dlq.orders")
    page = message_page(writer, "dlq.orders")
    assert reason in text(submit(writer, page, action, **fields)[1], 400)
    assert [each.body for each in drain(url, "dlq.orders")] == ["a pear"]


def test_a_hostile_body_stays_inside_its_field(url, writer):
    send(url, TextMessage(f"</textarea><script>alert(1)</script>{chr(10)}& &amp; \"'"), to="orders")
    page = message_page(writer, "orders")
    assert page.text.count("</textarea>") == 3
    assert "<script>alert" not in page.text
    assert "&lt;/textarea&gt;" in page.text


def test_an_edit_needs_a_console_that_is_writable(url, reader):
    send(url, TextMessage("x"), to="orders")
    assert "Edit" not in text(message_page(reader, "orders"))
