"""The sections of a message, written and read by proton: what its users send and see."""

from proton import Data, Described, symbol, ulong

HEADER, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = 0x70, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE = 0x75, 0x76, 0x77
FIELDS = {
    HEADER: ("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    PROPERTIES: (
        "message-id",
        "user-id",
        "to",
        "subject",
        "reply-to",
        "correlation-id",
        "content-type",
        "content-encoding",
        "absolute-expiry-time",
        "creation-time",
        "group-id",
        "group-sequence",
        "reply-to-group-id",
    ),
}


def value(of):
    """The bytes of a value."""
    data = Data()
    data.put_object(of)
    return bytes(data.encode())


def section(code, of):
    """The bytes of a section."""
    return value(Described(ulong(code), of))


def listed(code, **fields):
    """The bytes of a section with fields, by their names with underscores."""
    given = {name.replace("_", "-"): told for name, told in fields.items()}
    assert given.keys() <= set(FIELDS[code])
    return section(code, [given.get(name) for name in FIELDS[code]])


def annotated(**annotations):
    """The bytes of annotations, by their names with underscores."""
    return section(ANNOTATIONS, {symbol(name.replace("_", "-")): told for name, told in annotations.items()})


def read(raw):
    """The sections by their codes; fields and annotations by their names."""
    found = {}
    while raw:
        data = Data()
        size = data.decode(raw)
        data.rewind()
        data.next()
        described = data.get_object()
        code, of = int(described.descriptor), owned(described.value)
        names = FIELDS.get(code)
        found[code] = {n: told for n, told in zip(names, of, strict=False) if told is not None} if names else of
        raw = raw[size:]
    return found


def owned(of):
    """Proton shows bytes as views of memory that it will use again."""
    if isinstance(of, memoryview):
        return bytes(of)
    if isinstance(of, list):
        return [owned(part) for part in of]
    return {name: owned(part) for name, part in of.items()} if isinstance(of, dict) else of
