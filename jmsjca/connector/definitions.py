"""Definitions of business objects: the attributes of each type, from JSON or TOML files, code or pydantic models."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from jmsjca.connector.business_objects import Attribute, BusinessObject, Scalar, shown
from jmsjca.errors import ConfigurationError, DataHandlerError, excerpt

__all__ = ["AttributeDefinition", "BusinessObjectDefinition", "BusinessObjectDefinitions"]

Cardinality: TypeAlias = Literal["single", "multiple"]

_SCALARS: dict[type, str] = {str: "string", int: "integer", float: "float", bool: "boolean"}
_ATTRIBUTE = re.compile(r"[^.\[\]]+")
# Integers above this one are not all floats, so an attribute of type float would change them.
_LARGEST_EXACT = 2**53


class AttributeDefinition(BaseModel):
    """The definition of an attribute.

    Attributes:
        type: ``string``, ``integer``, ``float``, ``boolean``, or the type of a child business object.
        cardinality: ``single``, or ``multiple`` if the value is a list.
        key: Whether the attribute identifies the business object. A Delete event must have all keys.
        required: Whether each business object must have the attribute, except in a Delete event.
        width: The number of characters in fixed-width text; None if that format is not used.
        information: Application-specific information: of an attribute below ``JMSProperties`` of a dynamic meta-object,
            ``name=<property>;type=<type>``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str = "string"
    cardinality: Cardinality = "single"
    key: bool = False
    required: bool = False
    width: int | None = Field(default=None, ge=1)
    information: str = ""

    @property
    def is_scalar(self) -> bool:
        """Whether the values are scalars and not child business objects."""
        return self.type in _SCALARS.values()


class BusinessObjectDefinition(BaseModel):
    """The definition of a type of business object.

    Attributes:
        attributes: The definitions by the name of the attribute, in the order of delimited and fixed-width text.
        inactive: The values, by attribute, that a logical delete gives to a business object. A child that has all of
            them is not sent. Empty if there are no logical deletes.
        meta_object: The attribute that holds the dynamic meta-object of a top-level object; None if it has none. Data
            handlers of messages do not read and write it.
        verbs: Application-specific information by verb, ``response_selector=…`` for instance.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    attributes: dict[str, AttributeDefinition]
    inactive: dict[str, Scalar] = Field(default_factory=dict[str, Scalar])
    meta_object: str | None = None
    verbs: dict[str, str] = Field(default_factory=dict[str, str])

    def is_inactive(self, business_object: BusinessObject) -> bool:
        """Return whether a business object of this type is marked as logically deleted."""
        values = business_object.attributes
        return bool(self.inactive) and all(values.get(name) == value for name, value in self.inactive.items())


class BusinessObjectDefinitions(Mapping[str, BusinessObjectDefinition]):
    """Definitions by type; a child's type is looked up in the same definitions."""

    def __init__(self, definitions: Mapping[str, BusinessObjectDefinition | Mapping[str, Any]]) -> None:
        """Check the definitions.

        Args:
            definitions: Definitions, or mappings with their fields, by the type of the business object.

        Raises:
            ConfigurationError: Definitions are invalid; the message lists every problem.
        """
        try:
            self._definitions = _ADAPTER.validate_python(definitions)
        except ValidationError as error:
            raise _invalid("Definitions", _explained(error)) from error
        problems = list(self._inconsistencies())
        if problems:
            raise _invalid("Definitions", problems)

    @classmethod
    def from_file(cls, path: str | Path) -> "BusinessObjectDefinitions":
        """Read the definitions of a file: one table (TOML) or member (JSON) per type.

        Args:
            path: A file with the suffix ``.toml`` or ``.json``.

        Raises:
            ConfigurationError: The file cannot be read or parsed, or definitions are invalid.
        """
        file = Path(path)
        try:
            text = file.read_text("utf-8")
            content: object = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"Definitions of {file} cannot be read: {excerpt(error, 200)}.") from error
        try:
            return cls(cast("dict[str, Any]", content))
        except ConfigurationError as error:
            raise ConfigurationError(f"{file}: {error}") from error

    @classmethod
    def from_models(cls, *models: type[BaseModel]) -> "BusinessObjectDefinitions":
        """Return the definitions of pydantic models and of the models of their children.

        A field is an attribute, named by its alias if it has one. ``list[T]`` has multiple cardinality; a field without
        default is required. Key and width are in ``Field(json_schema_extra={"key": True, "width": 8})``.

        Raises:
            ConfigurationError: The annotation of a field is not a scalar, a model, or a list of scalars or models.
        """
        found: dict[str, BusinessObjectDefinition | Mapping[str, Any]] = {}
        waiting = list(models)
        while waiting:
            model = waiting.pop()
            if model.__name__ not in found:
                fields = {
                    field.alias or name: _Field.of(model, name, field) for name, field in model.model_fields.items()
                }
                found[model.__name__] = {"attributes": {name: field.definition for name, field in fields.items()}}
                waiting += [field.model for field in fields.values() if field.model]
        return cls(found)

    def __getitem__(self, name: str) -> BusinessObjectDefinition:
        return self._definitions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions)

    def __len__(self) -> int:
        return len(self._definitions)

    def validate(self, business_object: BusinessObject) -> None:
        """Check a business object and its children.

        Raises:
            DataHandlerError: Attributes are missing, unknown, or have values of another type or cardinality; the
                message lists every one with its path and value.
        """
        try:
            problems = list(self._problems(business_object, "", business_object.verb))
        except RecursionError as error:
            raise DataHandlerError(f"Business object {business_object.type} is nested too deeply.") from error
        if problems:
            raise DataHandlerError(
                f"Business object {excerpt(business_object.type)} is invalid: {'; '.join(problems)}."
            )

    def with_child_types(self, business_object: BusinessObject) -> BusinessObject:
        """Return a copy in which a child with its attribute's name as type has the type of the attribute's definition.

        Bodies that do not name the types of children are read that way.
        """
        definition = self.get(business_object.type)
        known = definition.attributes if definition else {}
        values = {
            name: self._with_type(value, name, known[name].type)
            if name in known and not known[name].is_scalar
            else value
            for name, value in business_object.attributes.items()
        }
        return BusinessObject(business_object.type, business_object.verb, values)

    def _with_type(self, value: Attribute, name: str, kind: str) -> Attribute:
        if isinstance(value, list):
            return [self._single_with_type(element, name, kind) for element in value]
        return self._single_with_type(value, name, kind)

    def _single_with_type(self, value: Scalar | BusinessObject, name: str, kind: str) -> Scalar | BusinessObject:
        if not isinstance(value, BusinessObject):
            return value
        chosen = kind if value.type == name else value.type
        return self.with_child_types(BusinessObject(chosen, value.verb, value.attributes))

    def without_inactive_children(self, business_object: BusinessObject) -> BusinessObject:
        """Return a copy without the children, at any depth, that are marked as logically deleted.

        The business object itself is kept: its logical delete is an event with verb Delete.
        """
        kept = {name: self._active(value) for name, value in business_object.attributes.items()}
        values = {name: value for name, value in kept.items() if not self._is_inactive(value)}
        return BusinessObject(business_object.type, business_object.verb, values)

    def _active(self, value: Attribute) -> Attribute:
        if isinstance(value, list):
            return [self._active_single(element) for element in value if not self._is_inactive(element)]
        return self._active_single(value)

    def _active_single(self, value: Scalar | BusinessObject) -> Scalar | BusinessObject:
        return self.without_inactive_children(value) if isinstance(value, BusinessObject) else value

    def _is_inactive(self, value: Attribute) -> bool:
        return isinstance(value, BusinessObject) and value.type in self and self[value.type].is_inactive(value)

    def _problems(self, source: BusinessObject, path: str, verb: str) -> Iterator[str]:
        definition = self.get(source.type)
        if definition is None:
            known = ", ".join(sorted(self))
            yield f"{path or 'its type'} {excerpt(source.type)!r} has no definition; there are: {known}"
            return
        for name, value in source.attributes.items():
            if name not in definition.attributes:
                yield f"{path}{excerpt(name)} = {shown(value)!r} is not in the definition of {source.type}"
        for name, attribute in definition.attributes.items():
            yield from self._value_problems(source.attributes.get(name), attribute, f"{path}{name}", verb)

    def _value_problems(self, value: Attribute, attribute: AttributeDefinition, path: str, verb: str) -> Iterator[str]:
        if value is None:
            if attribute.key if verb == "Delete" else attribute.required:
                yield f"{path} is missing" + (" and is a key of the Delete event" if verb == "Delete" else "")
        elif isinstance(value, list) != (attribute.cardinality == "multiple"):
            yield f"{path} = {shown(value)!r} does not have {attribute.cardinality} cardinality"
        elif isinstance(value, list):
            for index, element in enumerate(value):
                yield from self._single_problems(element, attribute, f"{path}[{index}]", verb)
        else:
            yield from self._single_problems(value, attribute, path, verb)

    def _single_problems(
        self, value: Scalar | BusinessObject, attribute: AttributeDefinition, path: str, verb: str
    ) -> Iterator[str]:
        if isinstance(value, BusinessObject) and value.type == attribute.type:
            yield from self._problems(value, f"{path}.", value.verb or verb)
        elif isinstance(value, BusinessObject) or not _is_of(value, attribute.type):
            yield f"{path} = {shown(value)!r} is not of type {attribute.type}"

    def _inconsistencies(self) -> Iterator[str]:
        for kind, definition in self.items():
            for name, attribute in definition.attributes.items():
                yield from (f"{kind}.{name}: {problem}" for problem in self._attribute_problems(name, attribute))
            for name in definition.inactive:
                if name not in definition.attributes:
                    yield f"{kind}.inactive: there is no attribute {excerpt(name)!r}"
            yield from (f"{kind}.meta_object: {problem}" for problem in self._meta_object_problems(definition))

    def _meta_object_problems(self, definition: BusinessObjectDefinition) -> Iterator[str]:
        if definition.meta_object is None:
            return
        attribute = definition.attributes.get(definition.meta_object)
        if attribute is None:
            yield f"there is no attribute {excerpt(definition.meta_object)!r}"
        elif attribute.is_scalar or attribute.cardinality == "multiple" or attribute.required or attribute.key:
            yield f"attribute {excerpt(definition.meta_object)!r} is not a single child that may be missing"

    def _attribute_problems(self, name: str, attribute: AttributeDefinition) -> Iterator[str]:
        if not _ATTRIBUTE.fullmatch(name):
            yield "a name is not empty and has no dots and brackets, which separate the steps of paths"
        if not attribute.is_scalar and attribute.type not in self:
            yield f"type {excerpt(attribute.type)!r} is neither a scalar ({', '.join(_SCALARS.values())}) nor defined"
        if attribute.width is not None and not attribute.is_scalar:
            yield f"width {attribute.width} belongs to a scalar, and {excerpt(attribute.type)!r} is none"


_ADAPTER = TypeAdapter(dict[str, BusinessObjectDefinition])


class _Field(BaseModel):
    """An attribute that was read from a field of a pydantic model, and the model of its children."""

    definition: AttributeDefinition
    model: type[BaseModel] | None

    @classmethod
    def of(cls, owner: type[BaseModel], name: str, field: FieldInfo) -> "_Field":
        """Return the attribute of a field."""
        inner = _without_none(field.annotation)
        multiple = get_origin(inner) is list
        item: object = _without_none(get_args(inner)[0]) if multiple else inner
        model = item if isinstance(item, type) and issubclass(item, BaseModel) else None
        kind = model.__name__ if model else _SCALARS.get(cast("type", item))
        if kind is None:
            raise ConfigurationError(
                f"Field {owner.__name__}.{name} has the annotation {excerpt(field.annotation)}; a business object has "
                "str, int, float, bool, models, and lists of them."
            )
        declared: object = field.json_schema_extra
        extra = cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}
        chosen = {key: extra[key] for key in ("key", "width") if key in extra}
        cardinality: Cardinality = "multiple" if multiple else "single"
        try:
            definition = AttributeDefinition(type=kind, cardinality=cardinality, required=field.is_required(), **chosen)
        except ValidationError as error:
            raise _invalid(f"Field {owner.__name__}.{name}", _explained(error)) from error
        return cls(definition=definition, model=model)


def _without_none(annotation: object) -> object:
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation
    members = [member for member in get_args(annotation) if member is not NoneType]
    return members[0] if len(members) == 1 else annotation


def _is_of(value: Scalar, kind: str) -> bool:
    if isinstance(value, float):
        return kind == "float" and value - value == 0
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= _LARGEST_EXACT
    return _SCALARS.get(type(value)) == kind


def _explained(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, problem['loc'])) or 'the content'} = {excerpt(problem['input'])!r}: {problem['msg']}"
        for problem in error.errors()
    ]


def _invalid(what: str, problems: Iterable[str]) -> ConfigurationError:
    return ConfigurationError(f"{what} are invalid: {'; '.join(problems)}.")
