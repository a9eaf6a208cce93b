"""Writes the types of keywords, at the end of the modules of their models: ``python -m tests.support.spec_fields``.

They are made from the fields of `ActivationSpec` and of `ConnectorConfig`.
"""

import inspect
import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from jmsjca.config.activation_spec import Accepts, ActivationSpec
from jmsjca.connector.config import ConnectorConfig

MODELS = (ActivationSpec, ConnectorConfig)
MARK = "# Made from the fields of `{}` by `python -m tests.support.spec_fields`: do not edit.\n"
CLASSES = '''

class ListenerFields(TypedDict, total=False):
    """The fields of an `ActivationSpec` without its destination: the keywords of `ResourceAdapter.listener`.

    `ActivationSpec` documents them. Validation also accepts what type checkers refuse here: texts in other letters, and
    numbers as text, as configuration files hold them.
    """

{}

class ActivationSpecFields(ListenerFields, total=False):
    """All fields of an `ActivationSpec`: its keywords."""

    destination: Required[{}]
'''
CONNECTOR = '''

class ConnectorFields(TypedDict, total=False):
    """The keywords of `ConnectorConfig`, which documents them."""

{}'''


def typed_fields(model):
    """Return the classes with the types of the keywords."""
    kinds = {name: text_of(field) for name, field in model.model_fields.items()}
    if model is ConnectorConfig:
        return CONNECTOR.format(lines(kinds))
    destination = kinds.pop("destination")
    return CLASSES.format(lines(kinds), destination)


def lines(kinds):
    """Return the lines of fields, with a line break where one is too long."""
    rows = (f"    {name}: {kind}\n" for name, kind in kinds.items())
    return "".join(row if len(row) <= 121 else row.replace(": ", ": (\n        ", 1)[:-1] + "\n    )\n" for row in rows)


def text_of(field):
    """Return the type of the keyword of a field, as Python code."""
    return next((str(each) for each in field.metadata if isinstance(each, Accepts)), None) or code_of(field.annotation)


def code_of(kind):
    """Return a type as Python code."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is NoneType:
        return "None"
    if origin is Annotated:
        return code_of(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(json.dumps(each) for each in arguments)}]"
    if origin in (Union, UnionType):
        return " | ".join(code_of(each) for each in arguments)
    return kind.__name__


def file_of(model):
    """Return the file of a model."""
    return Path(inspect.getfile(model))


def module(model):
    """Return the text of the module of a model, with the classes."""
    mark = MARK.format(model.__name__)
    return file_of(model).read_text("utf-8").partition(mark)[0] + mark + typed_fields(model)


def main():
    """Write the modules."""
    for model in MODELS:
        file_of(model).write_text(module(model), "utf-8")


if __name__ == "__main__":
    main()
