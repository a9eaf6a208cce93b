"""Large content that both sides make from a seed, so that only the outcome of its comparison is told."""

from jms_java import describe

from jmsjca.messages import BytesMessage, MapMessage, StreamMessage, TextMessage

__all__ = ["CONTENTS", "compare", "make", "outline"]

CONTENTS = ("binary", "string", "list", "map")
_PRINTABLE = 95  # characters, from the blank on


def make(content, size, seed, elements, element_size):
    """Make the message with the content of a seed: one text or bytes of a size, or so many texts."""
    if content == "binary":
        return BytesMessage(_bytes(seed, size))
    if content == "string":
        return TextMessage(_text(seed, size))
    texts = _texts(seed, elements, element_size)
    if content == "list":
        return StreamMessage(texts)
    return MapMessage({f"key_{place:04d}": text for place, text in enumerate(texts)})


def outline(content, size, elements, element_size):
    """Return what is told of the content instead of itself."""
    return {"size": size} if content in {"binary", "string"} else {"elements": elements, "element_size": element_size}


def compare(told, expected):
    """Return True if a described message has the kind and the body of another message."""
    wanted = describe(expected)
    return (told["kind"], told["body"]) == (wanted["kind"], wanted["body"])


def _texts(seed, elements, size):
    text = _text(seed, elements * size)
    return [text[place * size : (place + 1) * size] for place in range(elements)]


def _text(seed, size):
    return "".join(chr(ord(" ") + byte % _PRINTABLE) for byte in _bytes(seed, size))


def _bytes(seed, size):
    """Return the bytes of the linear congruential generator of the C library, as the suite wants them."""
    state, made = seed % 2**31, bytearray(size)
    for place in range(size):
        state = (state * 1103515245 + 12345) % 2**31
        made[place] = state >> 16 & 0xFF
    return bytes(made)
