"""What a content type tells of bytes: whether they are text, and in which encoding."""

import codecs
import re

from jmsjca.errors import MessageFormatError

__all__ = ["OBJECT", "OCTETS", "charset_of", "decoded"]

OCTETS = "application/octet-stream"
OBJECT = "application/x-java-serialized-object"

_TYPE = re.compile(r"\s*([^\s/;]+)/([^\s/;]+)\s*(?:;(.*))?", re.DOTALL)
_CHARSET = re.compile(r"\s*charset\s*=\s*(?:\"([^\"]+)\"|([^\s\";]+))\s*\Z", re.IGNORECASE)
_TEXTS = {"json", "xml", "javascript", "ecmascript", "xml-dtd", "xml-external-parsed-entity"}
_SUFFIXES = ("+json", "+xml")
# Encodings of texts that others use; Python knows some more, and some of those are slow or no encodings of texts.
_KNOWN = re.compile(
    r"(utf|iso8859|ascii|latin|cp\d|windows|koi8|mac|gb|big5|hz|shift_jis|euc|iso2022|johab|tis|ptcp)[\w-]*\Z"
)


def charset_of(content_type: str) -> str | None:
    """The encoding of a text of that content type; None if it is no text.

    Raises:
        MessageFormatError: It is no content type, or names an encoding that nobody here knows.
    """
    parts = _TYPE.fullmatch(content_type)
    if parts is None:
        raise MessageFormatError(f"{content_type!r:.100} is no content type")
    if not _is_text(parts[1].lower(), parts[2].lower()):
        return None
    named = [parameter for parameter in (parts[3] or "").split(";") if "charset" in parameter.lower()]
    return _codec(named[0]) if named else "utf-8"


def decoded(encoded: bytes, charset: str) -> str:
    """Decode a text. Without a mark of the order of bytes the high one comes first, as in the network.

    Raises:
        ValueError: The bytes are none.
    """
    marks = _MARKS.get(charset)
    return encoded.decode(charset if marks is None or encoded.startswith(marks) else f"{charset}-be")


_MARKS = {"utf-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE), "utf-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)}


def _is_text(kind: str, subtype: str) -> bool:
    return kind == "text" or (kind == "application" and (subtype in _TEXTS or subtype.endswith(_SUFFIXES)))


def _codec(parameter: str) -> str:
    found = _CHARSET.match(parameter)
    if found is None:
        raise MessageFormatError(f"{parameter!r:.100} names no charset")
    name = found[1] or found[2]
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        codec = ""
    if not _KNOWN.match(codec):
        raise MessageFormatError(f"nobody here knows the charset {name!r:.100}")
    return codec
