"""The naming context, and destinations that refer to its objects."""

import threading
from importlib.metadata import EntryPoint

import pytest

from jmsjca import Queue, Topic
from jmsjca.config.naming import NamingContext, resolve_destination
from jmsjca.errors import ConfigurationError, InvalidDestinationError, NameNotFoundError


def test_bound_object_is_found_with_and_without_the_prefix():
    naming = NamingContext()
    naming.bind("lookup://jms/orders", Queue("q1"))
    assert naming.lookup("jms/orders") == naming.lookup("lookup://jms/orders") == Queue("q1")


def test_name_can_be_bound_once_and_rebound():
    naming = NamingContext.of({"a": 1})
    with pytest.raises(ConfigurationError, match=r"'a' is bound already; rebind\(\)"):
        naming.bind("a", 2)
    naming.rebind("a", 3)
    assert naming.lookup("a") == 3


def test_unbound_name_is_not_found_and_a_similar_one_is_suggested():
    naming = NamingContext.of({"jms/Orders": Queue("q")}, NamingContext.of({"jms/prices": Topic("t")}))
    naming.unbind("nothing")
    with pytest.raises(NameNotFoundError, match=r"'jms/order' \(did you mean jms/Orders\?\)"):
        naming.lookup("jms/order")
    with pytest.raises(LookupError, match=r"did you mean jms/prices"):
        naming.lookup("jms/price")
    naming.unbind("jms/Orders")
    assert "jms/Orders" not in naming


def test_parent_is_asked_and_can_be_shadowed():
    naming = NamingContext(NamingContext.of({"a": 1, "b": 2}))
    naming.bind("a", 3)
    assert (naming.lookup("a"), naming.lookup("b"), list(naming)) == (3, 2, ["a", "b"])


def test_a_bound_context_has_the_names_behind_its_own():
    inner = NamingContext.of({"q": Queue("inner"), "jms/q": Queue("deep")}, NamingContext.of({"up": Queue("up")}))
    naming = NamingContext.of(
        {"remote": NamingContext.of({"q": Queue("far"), "site": inner}), "remote/own": Queue("own"), "a/b": inner},
        NamingContext.of({"parent": inner}),
    )
    for name in ("remote/q", "lookup://remote/q"):
        assert naming.lookup(name) == Queue("far")
    assert resolve_destination("lookup://remote/q", "queue", naming) == Queue("far")
    found = {"remote/site/jms/q": "deep", "remote/own": "own", "a/b/q": "inner", "a/b/up": "up", "parent/q": "inner"}
    assert {name: naming.lookup(name).name for name in found} == found
    assert naming.lookup("remote/site") is inner
    for name in ("remote/none", "remote/", "none/q", "remote/q/x"):
        with pytest.raises((NameNotFoundError, ConfigurationError)):
            naming.lookup(name)


@pytest.mark.parametrize("method", ["lookup", "unbind"])
def test_empty_name_is_refused(method):
    with pytest.raises(ConfigurationError, match="is empty"):
        getattr(NamingContext(), method)("lookup://")


def test_entry_point_is_loaded_when_it_is_looked_up():
    point = EntryPoint("answer", "jmsjca.destinations:JAVA_TYPES", "jmsjca.names")
    naming = NamingContext.of({"types": point, "broken": EntryPoint("broken", "no.such.module:x", "jmsjca.names")})
    assert naming.lookup("types")["queue"] == "javax.jms.Queue"
    with pytest.raises(ConfigurationError, match=r"no\.such\.module:x of the name 'broken' cannot be loaded"):
        naming.lookup("broken")


def test_threads_bind_each_name_once():
    naming, bound = NamingContext(), []

    def bind():
        for number in range(200):
            try:
                naming.bind(f"n{number}", threading.get_ident())
            except ConfigurationError:
                continue
            bound.append(number)

    threads = [threading.Thread(target=bind) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bound) == list(range(200))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("orders", Queue("orders")),
        ("lookup://jms/orders", Queue("q1234")),
        ("lookup://remote", Queue("q1234")),
        ("jndi://jms/orders", Queue("q1234")),
        ("jmsjca://?name=a%20b", Queue("a b")),
        ("jmsjca://name=a", Queue("a")),
    ],
)
def test_destination_is_resolved(name, found):
    naming = NamingContext.of({"jms/orders": Queue("q1234"), "remote": Queue("jndi://jms/orders")})
    assert resolve_destination(name, "queue", naming) == found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "empty"),
        ("lookup://topic", "is the topic:t, but a queue is needed"),
        ("lookup://number", "is a int: a Queue or Topic is needed"),
        ("lookup://a", "not resolved after 8 look-ups"),
        ("jmsjca://?x=1", r"has no name: write jmsjca://\?name=orders"),
        ("jmsjca://?name=a&x=1", "has no option 'x' here"),
    ],
)
def test_destination_that_cannot_be_resolved_is_refused(name, text):
    bound = {"topic": Topic("t"), "number": 1, "a": Queue("lookup://b"), "b": Queue("lookup://a")}
    with pytest.raises(InvalidDestinationError, match=text):
        resolve_destination(name, "queue", NamingContext.of(bound))


class Directory(NamingContext):
    """Counts the look-ups, as a remote directory would be asked."""

    def __init__(self, parent=None):
        super().__init__(parent)
        self.asked = []

    def lookup(self, name):
        self.asked.append(name)
        return super().lookup(name)


def test_destination_is_cached_until_names_change():
    parent = NamingContext.of({"jms/orders": Queue("q1")})
    naming = Directory(parent)
    first = naming.destination("lookup://jms/orders", "queue")
    assert naming.destination("lookup://jms/orders", "queue") is first
    assert naming.asked == ["jms/orders"]
    parent.rebind("jms/orders", Queue("q2"))
    assert naming.destination("lookup://jms/orders", "queue") == Queue("q2")
    naming.bind("jms/orders", Topic("t"))
    assert naming.destination("lookup://jms/orders", "topic") == Topic("t")
    with pytest.raises(InvalidDestinationError):
        naming.destination("lookup://jms/orders", "queue")
    naming.unbind("jms/orders")
    assert naming.destination("lookup://jms/orders", "queue") == Queue("q2")


def test_cache_of_destinations_does_not_grow_without_bound():
    naming = NamingContext()
    for number in range(3000):
        naming.destination(f"jmsjca://?name={number}", "queue")
    assert 0 < len(naming._destinations) <= 1000
