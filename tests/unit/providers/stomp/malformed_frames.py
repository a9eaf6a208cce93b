"""Malformed frames: none of their content may be taken for a message."""

from itertools import product

GOOD = {"destination": "/queue/q", "message-id": "1", "subscription": "{id}"}
BODY = "body"
LENGTHS = (
    *("", "-1", "-0", "+4", "4x", "x4", "0x4", "4.0", "1e1", " 4", "4 ", "4,4", "٤", "four", "4\\n"),
    *("0", "1", "3", "5", "9", "999999999999", "999999999999999999", "18446744073709551616", "9" * 40),
)
NOT_UTF8 = (b"\xff", b"\xc3", b"\xc3\x28", b"\xe2\x82", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\x80")
ESCAPES = (b"\\", b"\\t", b"\\x", b"\\N", b"\\0", b"\\ ", b"\\:", b"\\\\\\")
LINES = (b"none", b":", b":value", b"a\0:b", b"a:b\0", b"\0", b"no colon here")
COMMANDS = (
    *(b"", b"message", b"MESSAGES", b" MESSAGE", b"MESSAGE ", b"MES SAGE", b"\0MESSAGE", b"\xef\xbb\xbfMESSAGE"),
    *(b"SEND", b"CONNECT", b"STOMP", b"SUBSCRIBE", b"MESSAGE:", b"M" * 40, b"x-amqp-1.0-a:b\nMESSAGE"),
)


def vectors(subscription, version):
    """All of them by a name for each, for the subscription that they pretend to belong to."""
    found = {}
    for end in (b"\n", b"\r\n") if version == "1.2" else (b"\n",):
        _lengths(found, subscription, end)
        _heads(found, subscription, end)
        _frames(found, subscription, end)
    bare = b"\r" if version == "1.2" else None
    if bare:
        for place in (b"a%cb:c", b"a:b%cc", b"a:%cb"):
            found[place, "carriage return"] = _frame(subscription, b"\n", [place.replace(b"%c", bare)])
    else:
        for line in (b"a\\r:b", b"a:\\r"):
            found[line, "escape of 1.2"] = _frame(subscription, b"\n", [line])
    return found


def _lengths(found, subscription, end):
    for text in LENGTHS:
        found[end, "content-length", text] = _frame(subscription, end, [f"content-length:{text}".encode()])
    for first, second in product(("4", "5"), repeat=2):
        twice = [f"content-length:{text}".encode() for text in (first, second)]
        found[end, "two lengths", first, second] = _frame(subscription, end, twice)


def _heads(found, subscription, end):
    for text in NOT_UTF8:
        found[end, "name", text] = _frame(subscription, end, [text + b":a"])
        found[end, "value", text] = _frame(subscription, end, [b"a:" + text])
    for text in ESCAPES:
        found[end, "escape in a name", text] = _frame(subscription, end, [b"a" + text.replace(b":", b"z") + b":a"])
        found[end, "escape in a value", text] = _frame(subscription, end, [b"a:" + text])
    for text in LINES:
        found[end, "line", text] = _frame(subscription, end, [text])
    for name in GOOD:
        found[end, "without", name] = _frame(subscription, end, [], {k: v for k, v in GOOD.items() if k != name})


def _frames(found, subscription, end):
    for command in COMMANDS:
        found[end, "command", command] = _frame(subscription, end, [], command=command)
    found[end, "receipt with a body"] = end.join([b"RECEIPT", b"receipt-id:1", b"", b"body\0"])
    found[end, "receipt without an id"] = end.join([b"RECEIPT", b"", b"\0"])
    found[end, "connected again"] = end.join([b"CONNECTED", b"version:1.2", b"", b"\0"])
    found[end, "another protocol"] = end.join([b"HTTP/1.1 200 OK", b"content-length: 4", b"", b"body"])


def _frame(subscription, end, more, headers=None, command=b"MESSAGE"):
    usual = {**(GOOD if headers is None else headers)}
    lines = [f"{name}:{value.format(id=subscription)}".encode() for name, value in usual.items()]
    return end.join([command, *more, *lines, b"", BODY.encode() + b"\0"])
