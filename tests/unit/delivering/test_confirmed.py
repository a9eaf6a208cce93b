"""Whether a listener waits until the broker has noted an acknowledgement: always, unless nobody minds a repetition."""

import pytest

from jmsjca import AcknowledgeMode, ActivationSpec, Outcome
from jmsjca.inbound.endpoint import EndpointSettings
from tests.unit.delivering.stage import Performance, endpoint_of, put

AUTO, DUPS_OK = AcknowledgeMode.AUTO, AcknowledgeMode.DUPS_OK


class Noting:
    """A unit that notes how it is committed."""

    def __init__(self, real, confirmed):
        self._real, self._confirmed = real, confirmed

    def __getattr__(self, name):
        return getattr(self._real, name)

    def commit(self, *, confirmed=True, timeout=None):
        self._confirmed.append(confirmed)
        self._real.commit(confirmed=confirmed, timeout=timeout)


@pytest.mark.parametrize("mode", ["serial", "sync", "cc"])
@pytest.mark.parametrize(
    ("transaction", "acknowledge_mode", "waits"),
    [("none", DUPS_OK, False), ("none", AUTO, True), ("local", DUPS_OK, True), ("local", AUTO, True)],
)
def test_only_without_transactions_and_where_messages_may_be_doubled_nobody_waits(  # noqa: PLR0917
    connected, recorder, mode, transaction, acknowledge_mode, waits
):
    link, confirmed = connected(), []
    open_unit = link.unit
    put(link, "a")
    link.unit = lambda **kwargs: Noting(open_unit(**kwargs), confirmed)
    spec = ActivationSpec(
        destination="q", concurrency_mode=mode, transaction=transaction, acknowledge_mode=acknowledge_mode
    )
    performance = Performance(endpoint_of(lambda message: None, EndpointSettings.of(spec), recorder), link)
    recorder.await_outcome(Outcome.COMMITTED)
    performance.stop()
    assert confirmed == [waits]
