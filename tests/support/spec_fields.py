"""Writes the types of `ActivationSpec`'s keywords, at the end of its module: ``python -m tests.support.spec_fields``.

They are made from the fields of the model.
"""

import json
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from jmsjca.config import activation_spec
from jmsjca.config.activation_spec import Accepts, ActivationSpec

MODULE = Path(activation_spec.__file__)
MARK = "# Made from the fields of `ActivationSpec` by `python -m tests.support.spec_fields`: do not edit.\n"
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


def typed_fields():
    """Return the classes with the types of the keywords."""
    kinds = {name: text_of(field) for name, field in ActivationSpec.model_fields.items()}
    destination = kinds.pop("destination")
    return CLASSES.format("".join(f"    {name}: {kind}\n" for name, kind in kinds.items()), destination)


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


def module():
    """Return the text of the module with the classes."""
    return MODULE.read_text("utf-8").partition(MARK)[0] + MARK + typed_fields()


def main():
    """Write the module."""
    MODULE.write_text(module(), "utf-8")


if __name__ == "__main__":
    main()
