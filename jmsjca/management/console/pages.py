"""The pages and the actions of the console, and their HTML. Each function answers one request, on its own thread.

The actions are publish, replay, move, delete and edit. Each is shown as a plan first, and carried out after
confirmation.

A confirmation applies only to the messages in its plan. If the queue has changed, nothing is done and the page shows a
new plan. Otherwise messages would be deleted that no person has seen.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, cast
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from jmsjca import __version__
from jmsjca.adapter import ResourceAdapter
from jmsjca.destinations import Destination, named_destination
from jmsjca.errors import InvalidArgumentError, JMSError
from jmsjca.inbound.activation import Activation
from jmsjca.inbound.health import Health
from jmsjca.management.console.access import Form
from jmsjca.management.insight import (
    Change,
    Changes,
    DestinationInfo,
    Edit,
    Insight,
    SubscriptionInfo,
    selector_of_ids,
)
from jmsjca.management.message_changes import parse_property, text_message
from jmsjca.management.views import (
    MessageView,
    overview_row,
    preview_row,
    rate_row,
    record_details,
    record_row,
    subscription_row,
    visible,
)
from jmsjca.messages.bytes_and_stream import BytesMessage
from jmsjca.messages.message import Message, TextMessage
from jmsjca.redelivery.policy import redelivery_ladder

__all__ = [
    "EDIT_FIELDS",
    "PLOT_HEIGHT",
    "PLOT_WIDTH",
    "ActionPages",
    "LiveNumbers",
    "LiveRow",
    "ReadPages",
    "Renderer",
    "edit_of",
    "editable_text",
    "number_of",
    "page_link",
    "plot_points",
]

_MAX_CELL = 200
_NOTHING = "\N{EN DASH}"

EDIT_FIELDS = ("body", "properties", "removed")
_MAX_TEXT = 16 * 1024  # bytes; percent-encoding triples it, and a form may have 64 KiB


def editable_text(message: Message) -> str | None:
    """Return the body as text for a form; None if it is not text, is too long, or has characters that forms lose."""
    if isinstance(message, TextMessage):
        text = message.body or ""
    elif isinstance(message, BytesMessage):
        try:
            text = (message.get_body(bytes) or b"")[: _MAX_TEXT + 1].decode()
        except UnicodeDecodeError:
            return None
    else:
        return None
    # The number of characters is checked first, so that a large body is not copied.
    is_short = len(text) <= _MAX_TEXT and len(text.encode("utf-8", "surrogatepass")) <= _MAX_TEXT
    return text if is_short and all(char.isprintable() or char in "\n\t" for char in text) else None


def edit_of(form: Form, message: Message) -> Edit:
    """Return the edit that a form describes.

    Args:
        form: The form: body, properties to set as lines ``NAME=VALUE``, and names of properties to remove.
        message: The message before the edit.

    Raises:
        InvalidArgumentError: The form changes nothing, a property is not ``NAME=VALUE``, or the message lacks a
            property to remove.
    """
    body, old = _text(form, "body"), editable_text(message)
    changed = None if old is None or body == old else body
    properties = dict(map(parse_property, _lines(form, "properties")))
    removed = _lines(form, "removed")
    if changed is None and not properties and not removed:
        raise InvalidArgumentError("There is nothing to edit: change the body, or name properties.")
    edit = Edit(changed, properties, removed)
    edit.check(message)
    return edit


def _text(form: Form, name: str) -> str:
    """Return a field of a form. Browsers send its line ends as CR LF."""
    return (form.get(name) or [""])[-1].replace("\r\n", "\n")


def _lines(form: Form, name: str) -> Sequence[str]:
    return [line.strip() for line in _text(form, name).split("\n") if line.strip()]


PLOT_WIDTH, PLOT_HEIGHT = 120, 32  # in the coordinates of a plot
_INTERVAL = 1.0  # seconds between two samples
_SAMPLES = 60


@dataclass(frozen=True, slots=True)
class LiveRow:
    """The figures of one activation.

    Attributes:
        number: Number of the activation in its adapter.
        values: Figures by name, as the page shows them.
        plots: Points of the plots, by name.
    """

    number: int
    values: dict[str, str]
    plots: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Sample:
    moment: float
    delivered: int
    in_flight: int
    calls: int
    seconds: float


class LiveNumbers:
    """Samples the activations of an adapter at most once per second, while a page is open. Thread-safe.

    Args:
        adapter: The adapter.
        clock: Source of time, in seconds.
    """

    def __init__(self, adapter: ResourceAdapter, clock: Callable[[], float] = time.monotonic) -> None:
        self._adapter = adapter
        self._clock = clock
        self._lock = Lock()
        self._samples: dict[Activation, deque[_Sample]] = {}

    def rows(self) -> list[LiveRow]:
        """Take a sample, and return the figures of all activations."""
        with self._lock:
            return [self._row(number, each) for number, each in enumerate(self._adapter.activations)]

    async def events(self) -> AsyncGenerator[str]:
        """Yield the figures as server-sent events, once per second, until the client disconnects."""
        while True:
            rows = [{"number": each.number, "values": each.values, "plots": each.plots} for each in self.rows()]
            yield f"data: {json.dumps(rows)}\n\n"
            await asyncio.sleep(_INTERVAL)

    def _row(self, number: int, activation: Activation) -> LiveRow:
        samples = self._samples.setdefault(activation, deque(maxlen=_SAMPLES))
        stats, now = activation.stats, self._clock()
        if not samples or now - samples[-1].moment >= _INTERVAL / 2:  # several clients share the samples
            flight, calls = activation.units_in_flight, stats.n_messages - stats.n_active_endpoints
            samples.append(_Sample(now, stats.n_delivered_messages, flight, calls, stats.handler_seconds))
        rates, latencies = _rates(samples), _latencies(samples)
        values = {
            "status": activation.status,
            "in_flight": str(activation.units_in_flight),
            "delivered": str(stats.n_delivered_messages),
            "redelivered": str(stats.n_redelivered_messages),
            "bypassed": str(stats.n_bypassed_messages),
            "rate": f"{rates[-1]:.1f}" if rates else "0.0",
            "latency": f"{latencies[-1]:.1f}" if latencies else "0.0",
        }
        flights = [float(sample.in_flight) for sample in samples]
        plots = {"rate": rates, "in_flight": flights, "latency": latencies}
        return LiveRow(number, values, {name: plot_points(found) for name, found in plots.items()})


def _rates(samples: Sequence[_Sample]) -> list[float]:
    """Return the messages per second between consecutive samples; 0 where counters were reset."""
    pairs = zip(list(samples)[:-1], list(samples)[1:], strict=True)
    return [max(later.delivered - sooner.delivered, 0) / (later.moment - sooner.moment) for sooner, later in pairs]


def _latencies(samples: Sequence[_Sample]) -> list[float]:
    """Return the mean duration in milliseconds of the calls that ended between consecutive samples; 0 without calls."""
    pairs = zip(list(samples)[:-1], list(samples)[1:], strict=True)
    calls = [(later.calls - sooner.calls, later.seconds - sooner.seconds) for sooner, later in pairs]
    return [1000 * max(seconds, 0.0) / ended if ended > 0 else 0.0 for ended, seconds in calls]


def plot_points(values: Sequence[float]) -> str:
    """Return the points of an SVG polyline: the latest value on the right, the largest at the top, 0 at the bottom.

    Args:
        values: Values, oldest first, none negative.
    """
    largest, step = max([1.0, *values]), PLOT_WIDTH / (_SAMPLES - 1)
    first = PLOT_WIDTH - step * (len(values) - 1)
    heights = ((PLOT_HEIGHT - 2) * value / largest for value in values)
    return " ".join(f"{first + step * n:.1f},{PLOT_HEIGHT - 1 - height:.1f}" for n, height in enumerate(heights))


class Renderer:
    """Renders the templates of the console.

    Args:
        shared: Values of all templates, such as the CSRF token.
    """

    def __init__(self, shared: Mapping[str, object]) -> None:
        self._environment = Environment(
            loader=PackageLoader("jmsjca.management.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(age=_age, cell=_cell, moment=_moment, visible=visible)
        self._shared = {**shared, "version": __version__}

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a page.

        Args:
            request: The request to answer.
            template: Name of the template, without extension.
            status: HTTP status of the response.
            **values: Values for the template.
        """
        html = self._environment.get_template(f"{template}.html").render(
            **self._shared, **values, here=template, link=partial(page_link, request)
        )
        return HTMLResponse(html, status)


def page_link(request: Request, path: str, **query: object) -> str:
    """Return the address of a page, including the path where the console is mounted.

    Args:
        request: The request.
        path: Path of the page in the console.
        **query: The query. Empty values are left out.
    """
    shown = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{request.scope.get('root_path', '')}{path}{'?' if shown else ''}{urlencode(shown, errors='replace')}"


def _cell(value: object) -> str:
    """Return the beginning of a value for a table cell; a dash for an empty value."""
    if value is None or value == "":
        return _NOTHING
    text = str(value)
    return f"{visible(text, _MAX_CELL)}…" if len(text) > _MAX_CELL else visible(text)


def _moment(value: datetime | None) -> str:
    return _NOTHING if value is None else value.isoformat(" ", "seconds")


def _age(value: datetime) -> str:
    """Return how long ago a time was, in its largest whole unit."""
    seconds = max(int((datetime.now(UTC) - value).total_seconds()), 0)
    count, unit = next((seconds // size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
    return f"{count} {unit}"


_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_PAGE_SIZE = 50
_MAX_PAGE = 1_000_000
_SECONDS_OF_RATES = 1.0
_SPEC_FIELDS = (  # neither the URL nor the options, which may hold secrets
    *("destination_type", "destination", "selector", "subscription_durability", "subscription_name"),
    *("concurrency_mode", "endpoint_pool_max_size", "batch_size", "hold_until_ack", "max_outstanding"),
    *("redelivery_handling", "transaction", "acknowledge_mode", "context_name"),
)


class ReadPages:
    """The read-only pages.

    Args:
        insight: Reads the broker.
        adapter: The adapter to show; None to show only the broker.
        renderer: Renders the templates.
    """

    def __init__(self, insight: Insight, adapter: ResourceAdapter | None, renderer: Renderer) -> None:
        self._insight = insight
        self._adapter = adapter
        self._renderer = renderer
        self._live = None if adapter is None else LiveNumbers(adapter)

    async def events(self, request: Request) -> Response:
        """Send the figures of the activations as server-sent events."""
        del request
        if self._live is None:
            raise InvalidArgumentError("This console has no adapter, and so no live numbers.")
        return StreamingResponse(self._live.events(), media_type="text/event-stream")

    def home(self, request: Request) -> Response:
        """Show the queues, dead-letter queues with messages first, and the activations.

        If the broker is down, or does not list its queues, the activations are shown with the reason.
        """
        problem: str | None = None
        found: Sequence[DestinationInfo] = ()
        total = 0
        try:
            found, total = self._insight.overview(_PAGE_SIZE)
        except JMSError as error:
            problem = str(error)
        letters = [overview_row(each) for each in found if each.dead_letters]
        queues = [overview_row(each) for each in found if not each.dead_letters]
        return self._renderer.page(
            request,
            "home",
            problem=problem,
            letters=letters,
            queues=queues,
            hidden=total - len(found),
            rows=self._activation_rows(),
            adapter=self._adapter is not None,
        )

    def activations(self, request: Request) -> Response:
        """Show the activations of the adapter with health and counters."""
        pool = self._adapter.pool_stats() if self._adapter else {}
        return self._renderer.page(
            request, "activations", rows=self._activation_rows(), pool=pool, adapter=self._adapter is not None
        )

    def activation(self, request: Request) -> Response:
        """Show one activation: spec, counters and redelivery ladder."""
        activations, number = self._activations(), number_of(request, "n", 0)
        if number >= len(activations):
            raise InvalidArgumentError(f"There is no activation {number}.")
        activation = activations[number]
        return self._renderer.page(
            request,
            "activation",
            row=_activation_row(activation, self._live_rows()[number]),
            spec={name: getattr(activation.spec, name) for name in _SPEC_FIELDS},
            counters=activation.stats.as_dict(),
            outcomes={str(each.value): count for each, count in activation.stats.settled_messages.items()},
            ladder=list(redelivery_ladder(activation.spec.redelivery_policy)),
        )

    def destinations(self, request: Request) -> Response:
        """Show one page of the destinations, with depths and consumers of queues, and rates if requested."""
        search, page = request.query_params.get("search", ""), number_of(request, "page", 1)
        interval = _SECONDS_OF_RATES if "rates" in request.query_params else None
        found, total = self._insight.find_destinations(search, page=page, page_size=_PAGE_SIZE, interval=interval)
        counts = any(each.activity is not None and each.activity.added is not None for each in found)
        return self._renderer.page(
            request,
            "destinations",
            rows=list(map(rate_row, found)),
            total=total,
            search=search,
            page=page,
            more=page * _PAGE_SIZE < total,
            counts=counts,
            rates=interval is not None,
        )

    def subscriptions(self, request: Request) -> Response:
        """Show the durable subscriptions with depths and consumers."""
        return self._renderer.page(
            request, "subscriptions", rows=list(map(subscription_row, self._insight.subscriptions()))
        )

    def subscription(self, request: Request) -> Response:
        """Show one page of the messages of a durable subscription."""
        name, client, page = (*_subscriber(request.query_params), number_of(request, "page", 1))
        info = self._insight.subscription(name, client)
        found = self._insight.subscription_messages(info.subscription, page=page, page_size=_PAGE_SIZE)
        shown = _subscription_values(info)
        shown |= {"messages": list(map(preview_row, found)), "page": page, "more": len(found) == _PAGE_SIZE}
        return self._renderer.page(request, "subscription", **shown)

    def messages(self, request: Request) -> Response:
        """Show one page of the messages of a queue."""
        queue, selector, page = _place(request)
        found = self._insight.messages(queue, selector, page=page, page_size=_PAGE_SIZE) if queue else ()
        rows = list(map(preview_row, found))
        more = len(rows) == _PAGE_SIZE
        return self._renderer.page(
            request, "messages", queue=queue, selector=selector or "", rows=rows, page=page, more=more
        )

    def message(self, request: Request) -> Response:
        """Show one message: headers, properties, body, and the failure of a dead letter."""
        queue, _, _ = _place(request)
        message = self._insight.message(queue, request.query_params.get("id", ""))
        [record] = self._insight.records(queue, [message])
        return self._renderer.page(
            request,
            "message",
            queue=queue,
            id=message.message_id,
            view=MessageView.of(message, as_letter=True),
            record=record_details(record),
            editable=editable_text(message),
        )

    def dead_letters(self, request: Request) -> Response:
        """Show one page of the dead letters of a queue, in queue order."""
        queue, selector, page = _place(request)
        found = self._insight.messages(queue, selector, page=page, page_size=_PAGE_SIZE) if queue else ()
        rows = list(map(record_row, self._insight.records(queue, found)))
        more = len(rows) == _PAGE_SIZE
        return self._renderer.page(
            request, "dead_letters", queue=queue, selector=selector or "", rows=rows, page=page, more=more
        )

    def capabilities(self, request: Request) -> Response:
        """Show the capabilities of the broker."""
        return self._renderer.page(request, "capabilities", rows=asdict(self._insight.capabilities()))

    def _activation_rows(self) -> Sequence[Mapping[str, Any]]:
        return [_activation_row(each, live) for each, live in zip(self._activations(), self._live_rows(), strict=False)]

    def _live_rows(self) -> Sequence[LiveRow]:
        return self._live.rows() if self._live else ()

    def _activations(self) -> Sequence[Activation]:
        return self._adapter.activations if self._adapter else ()


def number_of(request: Request, name: str, least: int) -> int:
    """Return a number from the query.

    Args:
        request: The request.
        name: Name of the parameter.
        least: The minimum, and the default.

    Raises:
        InvalidArgumentError: The value is not a number, below the minimum, or above a million.
    """
    text = request.query_params.get(name) or str(least)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_PAGE)) and least <= int(text) <= _MAX_PAGE):
        raise InvalidArgumentError(f"{name}={text!r:.40} must be a number from {least} to {_MAX_PAGE}.")
    return int(text)


def _place(request: Request) -> tuple[str, str | None, int]:
    """Return queue, selector and page of a request."""
    queue, selector = request.query_params.get("queue", ""), request.query_params.get("selector", "").strip()
    return queue, selector or None, number_of(request, "page", 1)


def _subscriber(fields: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the name of a subscription, and its client id."""
    return fields.get("name", ""), fields.get("client") or None


def _subscription_values(info: SubscriptionInfo) -> dict[str, Any]:
    """Return the values of the page of a subscription."""
    values = {"removal": False, "removed": False, "has_changed": False, "messages": (), "page": 1, "more": False}
    return {**values, "row": subscription_row(info), "mark": info.depth.total}


def _activation_row(activation: Activation, live: LiveRow) -> dict[str, Any]:
    health = Health.of(activation.check_health(30.0))
    error = activation.last_error if activation.failure is None else activation.failure
    return {
        **live.values,
        "number": live.number,
        "plots": live.plots,
        "name": activation.name,
        "health": health.status,
        "reason": health.reason or (None if error is None else str(error)),
        "since": health.since,
    }


_SHOWN = 100  # changes that the page lists; all are counted

_Run = Callable[[Insight, "_Order", bool], Iterator[Change]]


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of a form: messages with certain ids, messages that match a selector, or all messages of a queue.

    Attributes:
        queue: The queue.
        place: The page of the form: "messages" or "dead-letters".
        selector: Selector of the messages; None for all.
        to: Destination of the messages; None for the origin of each message.
        fields: Form fields to confirm this order.
        form: The form.
    """

    queue: str
    place: str
    selector: str | None
    to: Destination | None
    fields: Sequence[tuple[str, str]]
    form: Form

    @classmethod
    def of(cls, form: Form) -> "_Order":
        """Return the order of a form. The button for the whole queue ignores chosen messages.

        Raises:
            InvalidArgumentError: The form does not name a queue, or names no messages.
            InvalidDestinationError: The form names an invalid destination.
        """
        queue, selector, name, amount = (_last(form, field) for field in ("queue", "selector", "to", "all"))
        ids = [each for each in form.get("id", ()) if each and amount != "purge"]
        if not queue:
            raise InvalidArgumentError("Name the queue.")
        if not ids and not amount:
            raise InvalidArgumentError("Choose messages, or all that the selector matches.")
        names = ("queue", "place", "selector", "to", "all", "id", *EDIT_FIELDS)
        fields = [(field, value) for field in names for value in form.get(field, ())]
        place = "messages" if _last(form, "place") == "messages" else "dead-letters"
        chosen = None if amount == "purge" else selector_of_ids(ids) if ids else selector or None
        return cls(queue, place, chosen, named_destination(name) if name else None, fields, form)

    @property
    def message_id(self) -> str:
        """Id of the only message.

        Raises:
            InvalidArgumentError: The form does not name exactly one message.
        """
        ids = [each for each in self.form.get("id", ()) if each]
        if len(ids) != 1:
            raise InvalidArgumentError("One message at a time can be edited.")
        return ids[0]


class ActionPages:
    """The pages that change messages.

    Args:
        insight: Changes the messages.
        renderer: Renders the templates.
    """

    def __init__(self, insight: Insight, renderer: Renderer) -> None:
        self._insight = insight
        self._renderer = renderer

    async def replay(self, request: Request) -> Response:
        """Send dead letters back to their origins, or to another destination."""
        return await run_in_threadpool(self._act, request, "replay", _replay)

    async def publish(self, request: Request) -> Response:
        """Send a text message."""
        return await run_in_threadpool(self._act, request, "publish", _publish)

    async def move(self, request: Request) -> Response:
        """Move messages to another destination."""
        return await run_in_threadpool(self._act, request, "move", _move)

    async def drop(self, request: Request) -> Response:
        """Delete messages."""
        return await run_in_threadpool(self._act, request, "drop", _drop)

    async def edit(self, request: Request) -> Response:
        """Replace a message by an edited copy in the same queue."""
        return await run_in_threadpool(self._act, request, "edit", _edit)

    async def mend(self, request: Request) -> Response:
        """Edit a dead letter, and send it to its origin or to another destination."""
        return await run_in_threadpool(self._act, request, "mend", _mend)

    async def unsubscribe(self, request: Request) -> Response:
        """Delete a durable subscription with its messages."""
        return await run_in_threadpool(self._unsubscribe, request)

    def _unsubscribe(self, request: Request) -> Response:
        form = cast("Form", request.scope["jmsjca.form"])
        info = self._insight.subscription(*_subscriber({name: _last(form, name) for name in ("name", "client")}))
        values = {**_subscription_values(info), "removal": True}
        confirmed = _last(form, "confirm") == "yes"
        has_changed = confirmed and _last(form, "plan") != str(values["mark"])
        if confirmed and not has_changed:
            self._insight.unsubscribe(info.subscription)
            values["removed"] = True
        values["has_changed"] = has_changed
        return self._renderer.page(request, "subscription", 409 if has_changed else 200, **values)

    def _act(self, request: Request, action: str, run: _Run) -> Response:
        form = cast("Form", request.scope["jmsjca.form"])
        order, confirmed = _Order.of(form), _last(form, "confirm") == "yes"
        changes = run(self._insight, order, not confirmed)
        mark, has_changed = _mark(changes), False
        if confirmed and isinstance(changes, Changes) and _last(form, "plan") not in {"", mark}:
            changes, confirmed, has_changed = iter(changes.planned), False, True  # unread changes are not carried out
        outcomes, shown, error = _carry_out(changes)
        return self._renderer.page(
            request,
            "changes",
            status=502 if error else 409 if has_changed else 200,
            mark=mark,
            has_changed=has_changed,
            action=action,
            verb="Purge" if _last(form, "all") == "purge" else _VERBS[action],
            order=order,
            confirmed=confirmed,
            outcomes=outcomes,
            total=sum(outcomes.values()),
            shown=shown,
            error=error,
        )


_VERBS = {
    "publish": "Publish",
    "move": "Move",
    "drop": "Delete",
    "replay": "Replay",
    "edit": "Replace",
    "mend": "Edit and replay",
}
"""The words on the buttons that confirm."""


def _publish(insight: Insight, order: _Order, dry_run: bool) -> Iterator[Change]:
    properties = dict(map(parse_property, _lines(order.form, "properties")))
    message = text_message(_text(order.form, "body"), properties)
    return iter([insight.publish(message, _target(order), dry_run=dry_run)])


def _move(insight: Insight, order: _Order, dry_run: bool) -> Iterator[Change]:
    return insight.move(order.queue, order.selector, to=_target(order), dry_run=dry_run)


def _target(order: _Order) -> Destination:
    if order.to is None:
        raise InvalidArgumentError("Name the destination to send to: NAME, queue:NAME or topic:NAME.")
    return order.to


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
    """Return a fingerprint of the messages in a plan; empty for an edit, where the form names the message."""
    if not isinstance(changes, Changes):
        return ""
    ids = sorted(each.message_id for each in changes.planned)
    return hashlib.sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()


def _carry_out(changes: Iterator[Change]) -> tuple[Counter[str], Sequence[Change], str | None]:
    """Return the outcomes, the first changes, and the error that stopped the work after at least one change."""
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
