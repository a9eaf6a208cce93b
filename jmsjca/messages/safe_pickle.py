"""The only module that pickles and unpickles. Pickles are checked first, and load only allowed names.

A small pickle can expand to a huge string or to lists of any depth, and some of its opcodes bypass the unpickler's hook
for names. Therefore the opcodes are first simulated, with a record of size and depth in place of each value.
"""

import io
import pickle
import pickletools
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import EnumType
from typing import Any

from jmsjca.errors import MessageFormatError

__all__ = ["dump", "load"]


def dump(value: object) -> bytes:
    """Return the pickle of an object.

    Raises:
        MessageFormatError: The object cannot be pickled.
    """
    try:
        return pickle.dumps(value)
    except Exception as error:  # its classes may raise anything
        raise MessageFormatError(
            f"An object of {type(value).__name__} cannot be pickled ({type(error).__name__})."
        ) from error


def load(pickled: bytes, allowed: AbstractSet[tuple[str, str]], max_bytes: int, max_depth: int) -> object:
    """Return the unpickled object, if the pickle names only what is allowed.

    Raises:
        MessageFormatError: The pickle names something else, is too large or too deep, or cannot be unpickled.
    """
    if not allowed:
        raise MessageFormatError("Nothing is allowed in the pickle of this ObjectMessage, so it is not unpickled.")
    if len(pickled) > max_bytes:
        raise MessageFormatError(f"A pickle of {len(pickled)} bytes is over the limit of {max_bytes} (max_bytes).")
    try:
        machine = _PickleSimulator(max_bytes * _EXPANSION, max_depth)
        for opcode, argument, _ in pickletools.genops(pickled):
            machine.step(opcode, argument)
        return _Unpickler(pickled, frozenset(allowed)).load()
    except MessageFormatError:
        raise
    except Exception as error:  # hostile bytes, and the classes that they name, may raise anything
        raise MessageFormatError(f"The object cannot be unpickled ({type(error).__name__}).") from error


class _Unpickler(pickle.Unpickler):
    def __init__(self, pickled: bytes, allowed: frozenset[tuple[str, str]]) -> None:
        super().__init__(io.BytesIO(pickled), fix_imports=False)  # would translate names of Python 2
        self._allowed = allowed

    def find_class(self, module_name: str, global_name: str) -> object:
        """Return the global that a pickle names. Everything that a pickle can call is looked up here."""
        if (module_name, global_name) not in self._allowed:
            if (module_name, global_name) in _GETATTR:
                return _enum_member
            raise MessageFormatError(
                f"The pickle of this ObjectMessage names {(module_name[:100], global_name[:100])}, which is not among"
                " the allowed; nothing of it was called."
            )
        return super().find_class(module_name, global_name)


_GETATTR = {("builtins", "getattr"), ("__builtin__", "getattr")}


def _enum_member(owner: object, name: str) -> object:
    """Return a member of an enumeration that the pickle names: early releases of Python 3.11 pickle it as ``getattr``.

    Raises:
        MessageFormatError: It is an attribute of something else, which could be a way to call anything.
    """
    if not (isinstance(owner, EnumType) and name in owner.__members__):
        raise MessageFormatError(
            "The pickle of this ObjectMessage names ('builtins', 'getattr') for what is no member of an allowed"
            " enumeration; nothing of it was called."
        )
    member: object = owner.__members__[name]
    return member


# Objects from outside of the pickle, and extension codes, which the unpickler may resolve without `find_class`.
_REFUSED = {"PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER"}
_PUTS = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GETS = {"GET", "BINGET", "LONG_BINGET"}
_UPDATES = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_NAMED = {"GLOBAL", "STACK_GLOBAL"}
_EXPANSION = 16  # the maximum factor between object and pickle: a value with two uses is pickled once


@dataclass(slots=True)
class _ValueInfo:
    """The size and depth of a value, and whether it is a named global or part of another value."""

    size: int = 1
    depth: int = 1
    named: bool = False
    held: bool = False


_MARK = _ValueInfo()


class _PickleSimulator:
    """The stack and the memo of an unpickler, with a `_ValueInfo` in place of each value.

    Where the two disagree whether an item is a mark or a value, the unpickler itself raises an error.
    """

    def __init__(self, max_bytes: int, max_depth: int) -> None:
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._stack: list[_ValueInfo] = []
        self._memo: dict[int, _ValueInfo] = {}

    def step(self, opcode: pickletools.OpcodeInfo, argument: Any) -> None:
        """Simulate one opcode."""
        name = opcode.name
        if name in _REFUSED:
            raise MessageFormatError(f"The pickle uses {name}, which is never allowed.")
        if name in _PUTS:
            self._put(len(self._memo) if argument is None else argument)
        elif name in _GETS:
            self._stack.append(self._memo[argument])
        elif name == "DUP":
            self._stack.append(self._stack[-1])
        elif name == "MARK":
            self._stack.append(_MARK)
        else:
            taken = self._take(opcode.stack_before)
            if opcode.stack_after:
                self._stack.append(self._made(name, argument, taken))

    def _put(self, place: int) -> None:
        if place > self._max_bytes:  # the unpickler would allocate a memo of that size
            raise MessageFormatError("The pickle numbers its parts as no pickler does.")
        self._memo[place] = self._stack[-1]

    def _take(self, before: list[pickletools.StackObject]) -> list[_ValueInfo]:
        """Pop the operands of an opcode: a number of values, and all values above the topmost mark."""
        taken: list[_ValueInfo] = []
        count = len(before)
        if pickletools.markobject in before:
            count = before.index(pickletools.markobject)
            while (note := self._stack.pop()) is not _MARK:
                taken.append(note)
        taken += [self._stack.pop() for _ in range(count)]
        return taken[::-1]

    def _made(self, name: str, argument: Any, taken: list[_ValueInfo]) -> _ValueInfo:
        note, *parts = taken if name in _UPDATES else [_ValueInfo(_size(argument)), *taken]
        for part in parts:
            part.held = True
        if note.named:  # this would change the class itself, for the whole process
            raise MessageFormatError("The pickle sets attributes of what it names, not of an object made from it.")
        if note.held:
            raise MessageFormatError("The pickle changes a part of something larger, so it may contain itself.")
        note.named = name in _NAMED
        note.size += sum(part.size for part in parts)
        note.depth = max([note.depth, *(part.depth + 1 for part in parts)])
        if note.depth > self._max_depth:
            raise MessageFormatError(f"The pickle is nested deeper than {self._max_depth} (max_depth).")
        if note.size > self._max_bytes * _EXPANSION:
            raise MessageFormatError(
                f"The object would be more than {_EXPANSION} times as large as {self._max_bytes} (max_bytes)."
            )
        return note


def _size(argument: Any) -> int:
    if isinstance(argument, int):
        return 1 + argument.bit_length() // 8
    return 1 + len(argument) if isinstance(argument, str | bytes | bytearray) else 1
