"""The typed property accessors of JMS, over `Message.properties`."""

from typing import Any

from jmsjca.messages.conversion import PropertyValue, typed
from jmsjca.messages.delivery import Delivered
from jmsjca.messages.names import DELIVERY_COUNT
from jmsjca.messages.numbers import Int
from jmsjca.messages.properties import Properties
from jmsjca.messages.reading import as_boolean, as_integer, as_real, as_text
from jmsjca.messages.vendor import vendor_property

__all__ = ["PropertyAccessors"]


class PropertyAccessors(Delivered):
    """``get_…_property`` converts by the table of JMS 3.1, section 3.5.4; ``set_…_property`` fixes the type.

    Getters raise `MessageFormatError` where the table forbids the conversion, setters where the value does not fit
    and `MessageNotWriteableError` on a received message. Besides what the sender set they know JMSXDeliveryCount, and
    where a listener delivers JMSJCA's own properties.
    """

    __slots__ = ("_properties",)

    _properties: Properties | None

    @property
    def properties(self) -> Properties:
        """Names and typed values beside the headers."""
        if self._properties is None:
            self._properties = Properties()
        return self._properties

    @properties.setter
    def properties(self, value: Properties) -> None:
        self._properties = value

    def has_properties(self) -> bool:
        """Tell whether there are any. For providers."""
        return bool(self._properties)

    def get_property_names(self) -> list[str]:
        """Name the properties that are set."""
        return [*self.properties, *([DELIVERY_COUNT] if self.delivery_count else [])]

    def property_exists(self, name: str) -> bool:
        """Tell whether the property is set."""
        return name in self.properties or (name == DELIVERY_COUNT and self.delivery_count > 0)

    def get_object_property(self, name: str) -> Any:
        """Give the value with the type that it was set with; None if it is not set."""
        context = self._context  # looked at right here: a call would be a third of the time
        if context is not None and context.endpoint is not None and (vendor := vendor_property(name)):
            value = vendor.read(self)
            return self.properties.get(name) if value is None and vendor.travels else value
        if name == DELIVERY_COUNT and self.delivery_count:
            return Int(self.delivery_count)
        return self.properties.get(name)

    def set_object_property(self, name: str, value: PropertyValue) -> None:
        """Set a value, typed as it stands."""
        context = self._context
        if context is not None and context.endpoint is not None and (vendor := vendor_property(name)):
            vendor.write(self, value)
        else:
            self.properties[name] = value

    def get_boolean_property(self, name: str) -> bool:
        """Read as boolean; False if it is not set."""
        return as_boolean(self.get_object_property(name))

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a boolean."""
        self.set_object_property(name, typed(value, "boolean"))

    def get_string_property(self, name: str) -> str | None:
        """Read as string; None if it is not set."""
        return as_text(self.get_object_property(name))

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a string."""
        self.set_object_property(name, typed(value, "string"))

    def get_byte_property(self, name: str) -> int:
        """Read as byte."""
        return as_integer(self.get_object_property(name), "byte")

    def set_byte_property(self, name: str, value: int) -> None:
        """Set a byte (8 bits, signed)."""
        self.properties[name] = typed(value, "byte")

    def get_short_property(self, name: str) -> int:
        """Read as short."""
        return as_integer(self.get_object_property(name), "short")

    def set_short_property(self, name: str, value: int) -> None:
        """Set a short (16 bits, signed)."""
        self.properties[name] = typed(value, "short")

    def get_int_property(self, name: str) -> int:
        """Read as int."""
        return as_integer(self.get_object_property(name), "int")

    def set_int_property(self, name: str, value: int) -> None:
        """Set an int (32 bits, signed)."""
        self.properties[name] = typed(value, "int")

    def get_long_property(self, name: str) -> int:
        """Read as long."""
        return as_integer(self.get_object_property(name), "long")

    def set_long_property(self, name: str, value: int) -> None:
        """Set a long (64 bits, signed)."""
        self.properties[name] = typed(value, "long")

    def get_float_property(self, name: str) -> float:
        """Read as float."""
        return as_real(self.get_object_property(name), "float")

    def set_float_property(self, name: str, value: float) -> None:
        """Set a float (single precision)."""
        self.properties[name] = typed(value, "float")

    def get_double_property(self, name: str) -> float:
        """Read as double."""
        return as_real(self.get_object_property(name), "double")

    def set_double_property(self, name: str, value: float) -> None:
        """Set a double."""
        self.properties[name] = typed(value, "double")
