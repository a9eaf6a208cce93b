"""Runs the steps of several programs in every order, without threads."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

__all__ = ["Place", "See", "State", "Visited", "explore"]

See = Callable[..., Any]
"""Takes a step: ``see(function, *arguments)``; ``turn=False`` for one that goes with the step before it, and
``forget=True`` for one after which nothing that was seen matters any more, because it lies on disk."""


class _HaltedError(BaseException):
    """Ends a run before a step that is not due yet."""


@dataclass(frozen=True)
class Place:
    """How far a program has come."""

    given: tuple[Any, ...] = ()  # what its steps gave
    matters: tuple[str, ...] = ()  # as far as it can matter
    outcome: Any = None  # what the program returned
    done: bool = False


@dataclass(frozen=True)
class State:
    """What lies on disk, and how far the programs have come."""

    disk: Any
    places: tuple[Place, ...]

    @property
    def key(self) -> object:
        return self.disk, tuple((place.matters, place.done, str(place.outcome)) for place in self.places)


class World(Protocol):
    """What the programs share."""

    programs: list[Callable[[See], object]]

    def restore(self, disk: Any) -> None: ...
    def disk(self) -> Any: ...
    def check(self, outcomes: list[Any]) -> None: ...


@dataclass
class Visited:
    """How much was visited."""

    states: int = 0
    ends: int = 0


def explore(world: World) -> Visited:
    """Play all orders. `World.check` is asked at each end."""
    begin = State(world.disk(), (Place(),) * len(world.programs))
    todo, known, ends = [begin], {begin.key}, 0
    while todo:
        state = todo.pop()
        turns = [n for n, place in enumerate(state.places) if not place.done]
        if not turns:
            ends += 1
            world.restore(state.disk)
            world.check([place.outcome for place in state.places])
        for after in (_play(world, state, n) for n in turns):
            if after.key not in known:
                known.add(after.key)
                todo.append(after)
    return Visited(len(known), ends)


def _play(world: World, state: State, n: int) -> State:
    """Let one program take its next step."""
    world.restore(state.disk)
    run = _Run(state.places[n])
    try:
        outcome = world.programs[n](run.see)
    except _HaltedError:
        place = run.place
    else:
        place = replace(run.place, outcome=outcome, done=True)
    return State(world.disk(), (*state.places[:n], place, *state.places[n + 1 :]))


class _Run:
    """One run of a program, from its beginning through one step more."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._given = iter(place.given)
        self._moved = False

    def see(self, step: Callable[..., Any], *arguments: object, turn: bool = True, forget: bool = False) -> Any:
        for known in self._given:
            return copy(known)
        if turn and self._moved:
            raise _HaltedError
        self._moved = self._moved or turn
        result = partial(step, *arguments)()
        told = str(sorted(result)) if isinstance(result, set) else str(result)
        self.place = Place((*self.place.given, result), (*(() if forget else self.place.matters), told))
        return copy(result)
