"""The typed property accessors of JMS, over `Message.properties`."""

from typing import cast

from jmsjca.messages.conversion import PropertyValue, convert, typed
from jmsjca.messages.properties import Properties

__all__ = ["PropertyAccessors"]


class PropertyAccessors:
    """``get_…_property`` converts by the table of JMS 3.1, section 3.5.4; ``set_…_property`` fixes the type.

    Getters raise `MessageFormatError` where the table forbids the conversion, setters where the value does not fit
    and `MessageNotWriteableError` on a received message.
    """

    __slots__ = ()

    properties: Properties

    def property_exists(self, name: str) -> bool:
        """Tell whether the property is set."""
        return name in self.properties

    def get_object_property(self, name: str) -> PropertyValue:
        """Give the value with the type that it was set with; None if it is not set."""
        return self.properties.get(name)

    def set_object_property(self, name: str, value: PropertyValue) -> None:
        """Set a value, typed as it stands."""
        self.properties[name] = value

    def get_boolean_property(self, name: str) -> bool:
        """Read as boolean; False if it is not set."""
        return bool(convert(self.properties.get(name), "boolean"))

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a boolean."""
        self.properties[name] = bool(value)

    def get_string_property(self, name: str) -> str | None:
        """Read as string; None if it is not set."""
        return cast("str | None", convert(self.properties.get(name), "string"))

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a string."""
        self.properties[name] = value

    def get_byte_property(self, name: str) -> int:
        """Read as byte."""
        return self._integer(name, "byte")

    def set_byte_property(self, name: str, value: int) -> None:
        """Set a byte (8 bits, signed)."""
        self.properties[name] = typed(value, "byte")

    def get_short_property(self, name: str) -> int:
        """Read as short."""
        return self._integer(name, "short")

    def set_short_property(self, name: str, value: int) -> None:
        """Set a short (16 bits, signed)."""
        self.properties[name] = typed(value, "short")

    def get_int_property(self, name: str) -> int:
        """Read as int."""
        return self._integer(name, "int")

    def set_int_property(self, name: str, value: int) -> None:
        """Set an int (32 bits, signed)."""
        self.properties[name] = typed(value, "int")

    def get_long_property(self, name: str) -> int:
        """Read as long."""
        return self._integer(name, "long")

    def set_long_property(self, name: str, value: int) -> None:
        """Set a long (64 bits, signed)."""
        self.properties[name] = typed(value, "long")

    def get_float_property(self, name: str) -> float:
        """Read as float."""
        return float(cast("float", convert(self.properties.get(name), "float")))

    def set_float_property(self, name: str, value: float) -> None:
        """Set a float (single precision)."""
        self.properties[name] = typed(value, "float")

    def get_double_property(self, name: str) -> float:
        """Read as double."""
        return float(cast("float", convert(self.properties.get(name), "double")))

    def set_double_property(self, name: str, value: float) -> None:
        """Set a double."""
        self.properties[name] = typed(value, "double")

    def _integer(self, name: str, wanted: str) -> int:
        return int(cast("int", convert(self.properties.get(name), wanted)))
