"""Objects that the tests of object messages pickle, and pickles that must be refused."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class Colour(Enum):
    RED = 1


@dataclass
class Order:
    """An order of our own."""

    number: int
    colour: Colour = Colour.RED
    parts: list[str] = field(default_factory=list)
    trusted = True

    @dataclass(frozen=True)
    class Line:
        """A class within a class."""

        text: str


HERE = __name__


def text(value: str) -> bytes:
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def named(module: str, name: str) -> bytes:
    """A name as protocol 4 writes it, which follows dots."""
    return text(module) + text(name) + b"\x93"


# How a pickle can call what it names: each makes a call of one text out of two ways to name it.
CALLS: dict[str, Callable[[str, str, str], bytes]] = {
    "GLOBAL, REDUCE": lambda m, n, a: f"c{m}\n{n}\n".encode() + b"(" + text(a) + b"tR.",
    "STACK_GLOBAL, REDUCE": lambda m, n, a: b"\x80\x04" + named(m, n) + text(a) + b"\x85R.",
    "INST": lambda m, n, a: b"(" + text(a) + f"i{m}\n{n}\n.".encode(),
    "OBJ": lambda m, n, a: b"(" + named(m, n) + text(a) + b"o.",
    "NEWOBJ": lambda m, n, a: b"\x80\x04" + named(m, n) + text(a) + b"\x85\x81.",
    "NEWOBJ_EX": lambda m, n, a: b"\x80\x04" + named(m, n) + text(a) + b"\x85}\x92.",
    "inside a dictionary": lambda m, n, a: b"\x80\x04}" + text("k") + named(m, n) + text(a) + b"\x85Rs.",
    "and thrown away": lambda m, n, a: b"\x80\x04" + named(m, n) + text(a) + b"\x85R0N.",
    "kept and fetched": lambda m, n, a: b"\x80\x04" + named(m, n) + b"\x940h\x00" + text(a) + b"\x85R.",
    "as a key": lambda m, n, a: b"\x80\x04}" + named(m, n) + text(a) + b"\x85RNs.",
    "behind a good one": lambda m, n, a: (
        b"\x80\x04(" + named("decimal", "Decimal") + text("1") + b"\x85R" + named(m, n) + text(a) + b"\x85Rl."
    ),
}

GADGETS = [
    *[("os", "system"), ("posix", "system"), ("os", "popen"), ("os", "mkdir"), ("subprocess", "Popen")],
    *[("subprocess", "getoutput"), ("builtins", "eval"), ("builtins", "exec"), ("builtins", "compile")],
    *[("builtins", "getattr"), ("builtins", "__import__"), ("builtins", "open"), ("builtins", "object")],
    *[("builtins", "type"), ("builtins", "vars"), ("builtins", "map"), ("builtins", "bytearray"), ("io", "open")],
    *[("io", "FileIO"), ("importlib", "import_module"), ("operator", "attrgetter"), ("operator", "methodcaller")],
    *[("functools", "partial"), ("functools", "reduce"), ("types", "FunctionType"), ("types", "CodeType")],
    *[("marshal", "loads"), ("pickle", "loads"), ("_pickle", "loads"), ("copyreg", "_reconstructor")],
    *[("ctypes", "CDLL"), ("webbrowser", "open"), ("pathlib", "Path.mkdir"), ("code", "interact")],
    *[("timeit", "timeit"), ("pdb", "run"), ("runpy", "run_path"), ("logging.config", "dictConfig")],
    *[("jmsjca.messages", "ObjectMessage"), ("decimal", "sys.exit"), ("decimal", "Decimal.__class__")],
    *[("decimal", "Decimal.__subclasses__"), ("decimal", "Decimal.from_float"), ("decimal", "__builtins__")],
    *[("decimal", "Decimal2"), ("decimal", "DecimalException"), ("decimal", "decimal"), ("decimal", "Context")],
    *[("decimal.Decimal", "Decimal"), ("decimal.x", "Decimal"), ("xdecimal", "Decimal"), ("_decimal", "Decimal")],
    *[("_pydecimal", "Decimal"), ("Decimal", "decimal"), ("decimal ", "Decimal"), ("decimal", " Decimal")],
    *[("DECIMAL", "Decimal"), ("decimal", "*"), ("*", "*"), ("", ""), ("decimal", ""), ("", "Decimal")],
    *[("__main__", "x"), ("__builtin__", "eval"), ("copy_reg", "_reconstructor")],
]


def bomb(levels: int) -> bytes:
    """A few bytes that stand for lists within lists, each twice in the next: 2 to the power of the levels."""
    return pickle.dumps(_doubled(levels), 4)


def _doubled(levels: int) -> object:
    value: object = ["x"]
    for _ in range(levels):
        value = [value, value]
    return value


def nested_tuple(depth: int) -> bytes:
    return b"\x80\x04)" + b"\x85" * (depth - 1) + b"."
