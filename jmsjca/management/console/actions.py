"""The actions of the console: replay, drop and edit. Each is shown as a plan, and done on confirmation.

A confirmation is for the messages of its plan. If the queue has others meanwhile, nothing is done, and the page has a
new plan: otherwise messages would be deleted that no person has seen.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from jmsjca.destinations import Destination, destination
from jmsjca.errors import InvalidArgumentError, JMSError
from jmsjca.management.console.access import Form
from jmsjca.management.console.editing import EDIT_FIELDS, edit_of
from jmsjca.management.console.rendering import Renderer
from jmsjca.management.insight import Change, Changes, Insight, selector_of_ids

__all__ = ["ActionPages"]

_SHOWN = 100  # changes that the page lists; it counts all

_Run = Callable[[Insight, "_Order", bool], Iterator[Change]]


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of a form: the messages with some ids, those that a selector matches, or all of a queue.

    Attributes:
        queue: The queue.
        selector: The selector of the messages; None for all.
        to: The destination of a replay; None for the origin of each message.
        fields: The fields of the form that confirm the same order.
        form: The form.
    """

    queue: str
    selector: str | None
    to: Destination | None
    fields: Sequence[tuple[str, str]]
    form: Form

    @classmethod
    def of(cls, form: Form) -> "_Order":
        """Return the order of a form.

        Raises:
            InvalidArgumentError: The form names no queue, or no messages.
        """
        queue, selector, name = (_last(form, field) for field in ("queue", "selector", "to"))
        ids = [each for each in form.get("id", ()) if each]
        if not queue:
            raise InvalidArgumentError("Name the queue.")
        if not ids and not _last(form, "all"):
            raise InvalidArgumentError("Choose messages, or all that the selector matches.")
        names = ("queue", "selector", "to", "to_kind", "all", "id", *EDIT_FIELDS)
        fields = [(field, value) for field in names for value in form.get(field, ())]
        to = destination(name, _last(form, "to_kind") or "queue") if name else None
        return cls(queue, selector_of_ids(ids) if ids else selector or None, to, fields, form)

    @property
    def message_id(self) -> str:
        """The id of the only message.

        Raises:
            InvalidArgumentError: The form names several, or none.
        """
        ids = [each for each in self.form.get("id", ()) if each]
        if len(ids) != 1:
            raise InvalidArgumentError("One message at a time can be edited.")
        return ids[0]


class ActionPages:
    """The pages that change messages.

    Args:
        insight: The service that changes them.
        renderer: Renders the templates.
    """

    def __init__(self, insight: Insight, renderer: Renderer) -> None:
        self._insight = insight
        self._renderer = renderer

    async def replay(self, request: Request) -> Response:
        """Send dead letters back to where each came from, or elsewhere."""
        return await run_in_threadpool(self._act, request, "replay", _replay)

    async def drop(self, request: Request) -> Response:
        """Delete messages."""
        return await run_in_threadpool(self._act, request, "drop", _drop)

    async def edit(self, request: Request) -> Response:
        """Replace a message by an edited copy in the same queue."""
        return await run_in_threadpool(self._act, request, "edit", _edit)

    async def mend(self, request: Request) -> Response:
        """Edit a dead letter and send it back to where it came from, or elsewhere."""
        return await run_in_threadpool(self._act, request, "mend", _mend)

    def _act(self, request: Request, action: str, run: _Run) -> Response:
        form = cast("Form", request.scope["jmsjca.form"])
        order, confirmed = _Order.of(form), _last(form, "confirm") == "yes"
        changes = run(self._insight, order, not confirmed)
        mark, has_changed = _mark(changes), False
        if confirmed and isinstance(changes, Changes) and _last(form, "plan") not in {"", mark}:
            changes, confirmed, has_changed = iter(changes.planned), False, True  # what is not read is not carried out
        outcomes, shown, error = _carry_out(changes)
        return self._renderer.page(
            request,
            "changes",
            status=502 if error else 409 if has_changed else 200,
            mark=mark,
            has_changed=has_changed,
            action=action,
            verb=_VERBS[action],
            order=order,
            confirmed=confirmed,
            outcomes=outcomes,
            total=sum(outcomes.values()),
            shown=shown,
            error=error,
        )


_VERBS = {"replay": "Replay", "drop": "Drop", "edit": "Replace", "mend": "Edit and replay"}
"""The words on the buttons that confirm."""


def _edit(insight: Insight, order: _Order, dry_run: bool) -> Iterator[Change]:
    message = insight.message(order.queue, order.message_id)
    edit = edit_of(order.form, message)
    return iter([insight.edit(order.queue, order.message_id, edit, to=order.to, dry_run=dry_run)])


def _mend(insight: Insight, order: _Order, dry_run: bool) -> Iterator[Change]:
    edit = edit_of(order.form, insight.message(order.queue, order.message_id))
    return insight.replay(order.queue, order.selector, to=order.to, edit=edit, dry_run=dry_run)


def _replay(insight: Insight, order: _Order, dry_run: bool) -> Iterator[Change]:
    return insight.replay(order.queue, order.selector, to=order.to, dry_run=dry_run)


def _drop(insight: Insight, order: _Order, dry_run: bool) -> Iterator[Change]:
    return insight.delete(order.queue, order.selector, dry_run=dry_run)


def _mark(changes: Iterator[Change]) -> str:
    """Return a mark of the messages in a plan; an empty text for an edit: its form names the only message."""
    if not isinstance(changes, Changes):
        return ""
    ids = sorted(each.message_id for each in changes.planned)
    return hashlib.sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()


def _carry_out(changes: Iterator[Change]) -> tuple[Counter[str], Sequence[Change], str | None]:
    """Return the outcomes, the first changes, and the error that ended them after one was done."""
    outcomes: Counter[str] = Counter()
    shown: list[Change] = []
    try:
        for change in changes:
            outcomes[change.outcome] += 1
            if len(shown) < _SHOWN:
                shown.append(change)
    except JMSError as error:
        if not outcomes:
            raise  # nothing was changed
        return outcomes, shown, str(error)
    return outcomes, shown, None


def _last(form: Form, name: str) -> str:
    values = form.get(name) or [""]
    return values[-1].strip()
