"""Selectors and messages as hypothesis makes them up, with all that may confuse a parser, SQL or JSON."""

from hypothesis import strategies as st

from tests.unit.selectors.message_table import HEADERS, reads_decimals_exactly

LONG = 1 << 63
NAMES = ("a", "b", "c", "_x", "$", "$y", "ünï", "価格", "JMSXGroupID", "JMS_v")

# Half of these are near misses of each other.
_TEXTS = ["", "a", "b", "ab", "A", "true", "1", "1.0", "NULL", "*", "?", "[a]", "it's", "''", "--", "🥕", "a\nb", "%"]
_ODD_TEXTS = [
    "a\0b",
    "a\0",
    "a\1",
    "a\\u0000",
    "\\",
    '"',
    ";",
    "$.p",
    "[0]",
    "/*",
    "\ufffe",
    "\ufffd",
    "\x7f",
    "\u2028",
]
_FLOATS = [0.0, -0.0, 1.0, 0.5, -2.5, 1e16, 2.0**53, 2.0**63, -(2.0**63), 0.125]
_HARD_FLOATS = [0.1, 0.1 + 0.2, 9.99, 1e300, 1.7976931348623157e308, 5e-324, 6.696887221807168, 1e22]
_INTEGERS = [LONG - 1, -LONG, LONG - 2, 1 << 53, (1 << 53) + 1, 1 << 62]

names = st.sampled_from([*NAMES, "missing", *HEADERS])
texts = st.sampled_from(_TEXTS + _ODD_TEXTS) | st.text("ab%_*?[]^'\"\\;-$:/\n\té漢🥕\0\1\x1f", max_size=5)
integers = st.integers(-4, 4) | st.sampled_from(_INTEGERS)
# Decimals that SQLite reads an ulp off cannot be calculated with alike.
floats = st.sampled_from(_FLOATS)
if reads_decimals_exactly():
    floats |= st.sampled_from(_HARD_FLOATS) | st.floats(allow_nan=False, allow_infinity=False)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(number: float) -> str:
    return repr(number) if number >= 0 else f"({number!r})"


def _spelled(number: int) -> st.SearchStrategy[str]:
    spellings = [str(number), f"{number}L"]
    return st.sampled_from(spellings if number < 0 else [*spellings, hex(number), f"0{number:o}"])


literals = texts.map(quoted)
numbers = integers.flatmap(_spelled) | floats.map(_number)
signs = st.sampled_from(["+", "-"])
arithmetic = st.recursive(
    names | numbers,
    lambda inner: (
        st.tuples(signs, inner).map(" ".join)
        | st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({' '.join(parts)})")
    ),
    max_leaves=4,
)
patterns = st.lists(st.sampled_from(["%", "_", "a", "b", "!%", "!_", "!!"]) | texts, max_size=4).map("".join)
maybe_not = st.sampled_from(["", "NOT "])


@st.composite
def _comparisons(draw: st.DrawFn) -> str:
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    operands = arithmetic | literals if operator in {"=", "<>"} else arithmetic
    return f"{draw(operands)} {operator} {draw(operands)}"


@st.composite
def _tests(draw: st.DrawFn) -> str:
    name, no = draw(names), draw(maybe_not)
    return draw(
        st.builds(f"{name} {no}LIKE {{}} ESCAPE '!'".format, patterns.map(quoted))
        | st.builds(f"{name} {no}IN ({{}})".format, st.lists(literals, min_size=1, max_size=3).map(", ".join))
        | st.builds(f"{{}} {no}BETWEEN {{}} AND {{}}".format, arithmetic, arithmetic, arithmetic)
        | st.sampled_from([f"{name} IS {no}NULL", name, "TRUE", "FALSE", f"{name} = TRUE", f"FALSE <> {name}"])
    )


conditions = st.recursive(
    _comparisons() | _tests(),
    lambda inner: (
        st.builds("NOT ({})".format, inner)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' AND '.join(parts)})")
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' OR '.join(parts)})")
    ),
    max_leaves=4,
)

_infinite = st.sampled_from([float("inf"), float("-inf"), float("nan")])
values = st.none() | st.booleans() | integers | floats | _infinite | texts
_header_texts = texts.map(lambda text: text.replace("\0", ""))
messages = st.fixed_dictionaries(
    {"JMSPriority": st.integers(0, 9), "JMSDeliveryMode": st.sampled_from(["PERSISTENT", "NON_PERSISTENT"])},
    optional={
        **dict.fromkeys(NAMES, values),
        **dict.fromkeys(["JMSType", "JMSCorrelationID", "JMSMessageID"], _header_texts),
        "JMSTimestamp": st.sampled_from([0, 5, 1_700_000_000_000]),
    },
)
