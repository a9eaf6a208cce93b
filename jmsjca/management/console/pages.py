"""The pages of the console that only read. Each function answers one request, on a thread of its own."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from jmsjca.errors import InvalidArgumentError
from jmsjca.inbound.activation import Activation
from jmsjca.inbound.health import Health
from jmsjca.management.console.editing import editable_text
from jmsjca.management.console.live import LiveNumbers, LiveRow
from jmsjca.management.console.rendering import Renderer
from jmsjca.management.insight import Insight
from jmsjca.management.message_view import MessageView
from jmsjca.management.redelivery_ladder import redelivery_ladder

__all__ = ["ReadPages", "number_of"]

_PAGE_SIZE = 50
_MAX_PAGE = 1_000_000
_SECONDS_OF_RATES = 1.0
_SPEC_FIELDS = (  # neither the URL nor the options, which may hold secrets
    *("destination_type", "destination", "selector", "subscription_durability", "subscription_name"),
    *("concurrency_mode", "endpoint_pool_max_size", "batch_size", "hold_until_ack", "max_outstanding"),
    *("redelivery_handling", "transaction", "acknowledge_mode", "context_name"),
)


class ShownAdapter(Protocol):
    """The part of a resource adapter that the pages show."""

    @property
    def activations(self) -> Sequence[Activation]:
        """The activations."""
        ...

    def pool_stats(self) -> dict[str, int]:
        """Return the counters of the pool."""
        ...


class ReadPages:
    """The pages that only read.

    Args:
        insight: The service that answers them.
        adapter: The adapter to show; None if the console shows a broker alone.
        renderer: Renders the templates.
    """

    def __init__(self, insight: Insight, adapter: ShownAdapter | None, renderer: Renderer) -> None:
        self._insight = insight
        self._adapter = adapter
        self._renderer = renderer
        self._live = None if adapter is None else LiveNumbers(adapter)

    async def events(self, request: Request) -> Response:
        """Send the numbers of the activations as server-sent events."""
        del request
        if self._live is None:
            raise InvalidArgumentError("This console has no adapter, and so no live numbers.")
        return StreamingResponse(self._live.events(), media_type="text/event-stream")

    def activations(self, request: Request) -> Response:
        """Show the activations of the adapter, their health and their counters."""
        rows = [_activation_row(each, live) for each, live in zip(self._activations(), self._live_rows(), strict=False)]
        pool = self._adapter.pool_stats() if self._adapter else {}
        return self._renderer.page(request, "activations", rows=rows, pool=pool, adapter=self._adapter is not None)

    def activation(self, request: Request) -> Response:
        """Show one activation: its spec, its counters and its redelivery ladder."""
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
        """Show one page of the destinations, with the depths and consumers of queues, and their rates if asked."""
        search, page = request.query_params.get("search", ""), number_of(request, "page", 1)
        interval = _SECONDS_OF_RATES if "rates" in request.query_params else None
        rows, total = self._insight.find_destinations(search, page=page, page_size=_PAGE_SIZE, interval=interval)
        counts = any(row.activity is not None and row.activity.added is not None for row in rows)
        return self._renderer.page(
            request,
            "destinations",
            rows=rows,
            total=total,
            search=search,
            page=page,
            more=page * _PAGE_SIZE < total,
            counts=counts,
            rates=interval is not None,
        )

    def messages(self, request: Request) -> Response:
        """Show one page of the messages of a queue."""
        queue, selector, page = _place(request)
        rows = self._insight.messages(queue, selector, page=page, page_size=_PAGE_SIZE) if queue else ()
        more = len(rows) == _PAGE_SIZE
        return self._renderer.page(
            request, "messages", queue=queue, selector=selector or "", rows=rows, page=page, more=more
        )

    def message(self, request: Request) -> Response:
        """Show one message: its headers, its properties, its body, and its failure if it is a dead letter."""
        queue, _, _ = _place(request)
        message = self._insight.message(queue, request.query_params.get("id", ""))
        [record] = self._insight.records(queue, [message])
        return self._renderer.page(
            request,
            "message",
            queue=queue,
            id=message.message_id,
            view=MessageView.of(message),
            record=record,
            editable=editable_text(message),
        )

    def dead_letters(self, request: Request) -> Response:
        """Show one page of the dead letters of a queue, in the order of the queue."""
        queue, selector, page = _place(request)
        found = self._insight.messages(queue, selector, page=page, page_size=_PAGE_SIZE) if queue else ()
        rows = self._insight.records(queue, found)
        more = len(rows) == _PAGE_SIZE
        return self._renderer.page(
            request, "dead_letters", queue=queue, selector=selector or "", rows=rows, page=page, more=more
        )

    def capabilities(self, request: Request) -> Response:
        """Show the capabilities of the broker."""
        return self._renderer.page(request, "capabilities", rows=asdict(self._insight.capabilities()))

    def _live_rows(self) -> Sequence[LiveRow]:
        return self._live.rows() if self._live else ()

    def _activations(self) -> Sequence[Activation]:
        return self._adapter.activations if self._adapter else ()


def number_of(request: Request, name: str, least: int) -> int:
    """Return a number of the query.

    Args:
        request: The request.
        name: The name of the parameter.
        least: The least number, which is the default as well.

    Raises:
        InvalidArgumentError: It is no number, too low, or above a million.
    """
    text = request.query_params.get(name) or str(least)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_PAGE)) and least <= int(text) <= _MAX_PAGE):
        raise InvalidArgumentError(f"{name}={text!r:.40} must be a number from {least} to {_MAX_PAGE}.")
    return int(text)


def _place(request: Request) -> tuple[str, str | None, int]:
    """Return the queue, the selector and the page of a request."""
    queue, selector = request.query_params.get("queue", ""), request.query_params.get("selector", "").strip()
    return queue, selector or None, number_of(request, "page", 1)


def _activation_row(activation: Activation, live: LiveRow) -> dict[str, Any]:
    health = Health.of(activation.check_health(30.0))
    error = activation.failure or activation.last_error
    return {
        **live.values,
        "number": live.number,
        "plots": live.plots,
        "name": activation.name,
        "health": health.status,
        "reason": health.reason or (None if error is None else str(error)),
        "since": health.since,
    }
