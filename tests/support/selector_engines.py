"""Random selectors and messages, and what the selector engines of Artemis and ActiveMQ make of them."""

import json
import subprocess

from brokers.provisioning import java
from jms_java.described import told_value
from jms_java.program import classpath

from jmsjca.messages import Byte, Double, Float, Int, Long, Short

ENGINES = ("artemis", "activemq")


def decisions(engine, selectors, messages):
    """Return what an engine makes of each selector: "refused", or a letter for each message.

    Args:
        engine: The name of the broker.
        selectors: The texts of selectors.
        messages: Mappings of headers and properties, by the names that the engine knows.

    Returns:
        For each selector "refused", or T, F or E (it threw) for each message.
    """
    command = java(classpath("selectors", "selectors", "java"), {}, "selectors.Main", engine)
    told = [{name: told_value(value) for name, value in message.items()} for message in messages]
    lines = "\n".join(json.dumps(each) for each in (told, *selectors))
    return subprocess.run(command, input=lines, capture_output=True, check=True, encoding="utf-8").stdout.splitlines()


# No NaN and no negative zero, which docs/reference/compatibility.md names. What is calculated stays within 64 bits, and
# exact numbers that are compared with fractions stay where a double is exact.
NUMBERS = [
    *(kind(number) for kind in (Byte, Short, Int, Long) for number in (-3, 0, 1, 2, 4, 7)),
    *(kind(number) for kind in (Float, Double) for number in (-2.5, 0.0, 0.5, 1.5, 2.0, 4.0, 7.25)),
    *(Int(2**31 - 1), Int(-(2**31)), Long(2**31 + 5), Long(-(2**31) - 5), Float(0.1), Double(0.1), Short(300)),
]
TEXTS = ["", "red", "Red", "r_d", "a%", "it's", "2", "TRUE", "größe", "x\ny", "!", "🥕", "PERSISTENT"]
NAMES = ["a", "b", "c", "n", "m", "$x", "_y", "kind"]
LITERALS = [
    "0",
    "1",
    "2",
    "4",
    "7",
    "-3",
    "0L",
    "2L",
    "017",
    "0x2",
    "2147483647",
    "2147483653",
    "2.0",
    "2f",
    "1.5",
    "7.",
    ".5",
    "5E-1",
    "2d",
]


def random_message(random):
    """Return headers and properties by name; each of the properties may be missing."""
    message = {
        "JMSPriority": Int(random.randrange(10)),
        "JMSTimestamp": Long(1_700_000_000_000 + random.randrange(3)),
        "JMSDeliveryMode": random.choice(["PERSISTENT", "NON_PERSISTENT"]),
    }
    for header in ("JMSType", "JMSCorrelationID"):
        if random.random() < 0.5:
            message[header] = random.choice(TEXTS)
    for name in NAMES:
        kind = random.randrange(8)
        if kind < 4:
            message[name] = random.choice(NUMBERS)
        elif kind < 6:
            message[name] = random.choice(TEXTS)
        elif kind == 6:
            message[name] = random.random() < 0.5
    return message


def random_selector(random, depth=3):
    """Return the text of a selector."""
    if depth == 0 or random.random() < 0.3:
        return _test(random)
    shape = random.randrange(6)
    one = random_selector(random, depth - 1)
    if shape == 0:
        return f"NOT {one}"
    if shape == 1:
        return f"not({one})"
    other = random_selector(random, depth - 1)
    word = random.choice([" AND ", " OR ", " and ", "\nOR "])
    return f"({one}){word}({other})" if random.random() < 0.5 else f"{one}{word}{other}"


def _test(random):
    name = random.choice([*NAMES, "JMSType", "JMSCorrelationID"])
    no = random.choice(["", "NOT "])
    operator = random.choice(["=", "<>", "<", "<=", ">", ">="])
    equality = random.choice(["=", "<>"])
    return random.choice(
        [
            lambda: f"{name} {operator} {random.choice(LITERALS)}",
            lambda: f"{random.choice(LITERALS)} {operator} {name}",
            lambda: f"{name} {operator} {random.choice(NAMES)}",
            lambda: f"{name} {equality} {_quoted(random)}",
            lambda: f"{_quoted(random)} {equality} {name}",
            lambda: f"{name} {equality} {random.choice(['TRUE', 'false'])}",
            lambda: f"{_arithmetic(random)} {operator} {_arithmetic(random)}",
            lambda: f"{_arithmetic(random)} {operator} {random.choice([*NAMES, *LITERALS])}",
            lambda: f"{name} {no}BETWEEN {random.choice(LITERALS)} AND {_arithmetic(random)}",
            lambda: f"{name} {no}IN ({', '.join(_quoted(random) for _ in range(random.randint(1, 6)))})",
            lambda: f"{name} {no}LIKE {_pattern(random)}",
            lambda: f"{name} IS {no}NULL",
            lambda: random.choice(NAMES),
            lambda: random.choice(["TRUE", "FALSE", "1 = 1.0", "'a' <> 'b'", "2 > 3", "'a' = 1"]),
            lambda: f"JMSPriority {operator} {random.randrange(10)}",
            lambda: f"JMSTimestamp {operator} 1700000000001",
            lambda: f"JMSDeliveryMode {equality} {random.choice(['', 'NON_'])}PERSISTENT'".replace(
                f"{equality} ", f"{equality} '"
            ),
            lambda: f"JMSDeliveryMode {no}IN ('PERSISTENT', 'DURABLE')",
            lambda: f"JMSDeliveryMode {no}LIKE 'PER%'",
        ]
    )()


def _arithmetic(random):
    """Return a calculation with one product at most, so that it stays within 64 bits."""
    one, other = (random.choice([*NAMES, *NAMES, *LITERALS]) for _ in "ab")
    return random.choice(
        [
            f"{one} + {other}",
            f"{one} - {other}",
            f"-{one}",
            f"{one} * {other}",
            f"{one} * {other} - {random.choice(NAMES)}",
            f"({one} + {other}) / {random.choice(['2.0', '0', '0.0', '-0.5'])}",
            f"{one} / ({random.choice(NAMES)} + 0.5)",
            f"1.5 / {random.choice(NAMES)}",
            f"+{one}",
        ]
    )


def _quoted(random):
    return "'" + random.choice(TEXTS).replace("'", "''") + "'"


def _pattern(random):
    return random.choice(
        [
            *("'%'", "''", "'r_d'", "'%e%'", "'it''s'", "'_'", "'x_y'", "'(red)|.*'", "'gr__e'"),
            *("'r!_d' ESCAPE '!'", "'a\\%' ESCAPE '\\'", "'%!!' ESCAPE '!'", "'xred' ESCAPE 'x'", "'🥕%%' ESCAPE '🥕'"),
        ]
    )
