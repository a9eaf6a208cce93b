"""Described lists with named fields: what frames, termini and outcomes are."""

from functools import cache

from amqp_peer.values import Described, Symbol, UByte, UInt, ULong, UShort

__all__ = ["Composite", "composed"]

_TYPES = {"uint": UInt, "ushort": UShort, "ubyte": UByte, "symbol": Symbol, "any": lambda value: value}


class Composite:
    """A described list with named fields: ``Open(container_id="peer")``. What is not named is null."""

    CODE = 0
    FIELDS = ""

    def __init__(self, **fields):
        known = self._types()
        assert fields.keys() <= known.keys(), f"{type(self).__name__} has no {fields.keys() - known.keys()}"
        self.fields = {name: None if value is None else known[name](value) for name, value in fields.items()}

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._types():
            raise AttributeError(name)
        return self.fields.get(name)

    def __repr__(self):
        told = ", ".join(f"{name}={str(value)[:60]}" for name, value in self.fields.items() if value is not None)
        return f"{type(self).__name__}({told})"

    def matches(self, other):
        """Tell whether another one has the fields of this one; of composites inside, only what they name."""
        return type(self) is type(other) and all(_same(value, getattr(other, n)) for n, value in self.fields.items())

    def described(self):
        """Itself as a described list."""
        return Described(ULong(self.CODE), [self.fields.get(name) for name in self._types()])

    @classmethod
    def _types(cls):
        pairs = (field.partition(":") for field in cls.FIELDS.split())
        return {name: _TYPES[kind or "any"] for name, _, kind in pairs}


def _same(wanted, found):
    if isinstance(wanted, type):
        return isinstance(found, wanted)
    return wanted.matches(found) if isinstance(wanted, Composite) else wanted == found


def composed(value):
    """Turn described lists, also those inside, into composites where they are known."""
    if isinstance(value, Described) and value.descriptor in _by_code() and isinstance(value.value, list):
        kind = _by_code()[value.descriptor]
        return kind(**dict(zip(kind._types(), map(composed, value.value), strict=False)))
    return value


@cache
def _by_code():
    return {kind.CODE: kind for kind in Composite.__subclasses__()}
