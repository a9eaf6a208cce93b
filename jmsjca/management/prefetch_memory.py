"""The memory that the prefetched messages of a listener may need."""

from collections.abc import Iterator

from jmsjca.adapter import ResourceAdapter
from jmsjca.config.activation_spec import ActivationSpec
from jmsjca.config.settings import Limits

__all__ = ["prefetch_rows"]

_PER_HANDLER = 2  # messages that the mode cc prefetches for each handler


def prefetch_rows(adapter: ResourceAdapter) -> Iterator[dict[str, object]]:
    """Yield one row for each listener of an adapter: its consumers, and the messages and bytes that they prefetch.

    ``usual_bytes`` is the bound while messages are of similar sizes: `Limits.prefetch_bytes` and one message for each
    consumer. ``worst_bytes`` is the bound if all messages suddenly are as large as `Limits.message_bytes` permits.
    """
    limits = adapter.limits
    for activation in adapter.activations:
        consumers, prefetched = _bounds(activation.spec, limits)
        each = min(limits.prefetch_bytes + limits.message_bytes, prefetched * limits.message_bytes)
        yield {
            "listener": activation.name,
            "mode": activation.spec.concurrency_mode,
            "consumers": consumers,
            "prefetched": consumers * prefetched,
            "usual_bytes": consumers * each,
            "worst_bytes": consumers * prefetched * limits.message_bytes,
        }


def _bounds(spec: ActivationSpec, limits: Limits) -> tuple[int, int]:
    """Return the number of consumers, and of the messages that one of them prefetches at most."""
    size = spec.batch_size or 1
    if spec.concurrency_mode == "serial":
        return 1, limits.chunk
    if spec.concurrency_mode == "cc":
        return 1, max(size, limits.prefetch_messages, _PER_HANDLER * spec.endpoint_pool_max_size)
    return spec.endpoint_pool_max_size if spec.destination_type == "queue" else 1, max(size, limits.chunk)
