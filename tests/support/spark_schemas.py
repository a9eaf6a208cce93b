"""Schemas of Spark without a session, which alone could parse the texts of types."""

from pyspark.sql import types as t

_TYPES = {
    "tinyint": t.ByteType(),
    "smallint": t.ShortType(),
    "int": t.IntegerType(),
    "bigint": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "boolean": t.BooleanType(),
    "string": t.StringType(),
    "binary": t.BinaryType(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(),
    "timestamp_ntz": t.TimestampNTZType(),
    "variant": t.VariantType(),
}


def schema_of(**kinds: str) -> t.StructType:
    """A schema with columns of types as Spark writes them, for example ``array<struct<x:int>>``."""
    return t.StructType([t.StructField(name, type_of(kind)) for name, kind in kinds.items()])


def type_of(kind: str) -> t.DataType:
    """A type of Spark."""
    name, _, inner = kind.removesuffix(">").partition("<")
    if name == "array":
        return t.ArrayType(type_of(inner))
    if name == "map":
        key, value = _split(inner)
        return t.MapType(type_of(key), type_of(value))
    if name == "struct":
        return t.StructType([t.StructField(*_field(each)) for each in _split(inner)])
    if kind.startswith("decimal("):
        return t.DecimalType(*(int(number) for number in kind[8:-1].split(",")))
    return _TYPES[kind]


def _field(text: str) -> tuple[str, t.DataType]:
    name, _, kind = text.partition(":")
    return name, type_of(kind)


def _split(text: str) -> list[str]:
    """The parts between the commas that are within no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts
