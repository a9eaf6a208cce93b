"""Settlement: awaited by threads and by coroutines, settled once."""

import asyncio
import threading

import pytest

from jmsjca import Outcome, Settlement
from jmsjca.messages.delivery import complete_settlement
from jmsjca.outbound.unit_of_work import UnitOfWork

PATIENCE = 30


@pytest.mark.parametrize("outcome", list(Outcome))
def test_outcome_is_what_it_was_settled_with(outcome):
    settlement = Settlement()
    complete_settlement(settlement, outcome)
    assert settlement.outcome is settlement.wait(0) is settlement.wait() is outcome
    assert outcome.value in repr(settlement)


def test_open_settlement_has_no_outcome():
    settlement = Settlement()
    assert settlement.outcome is None
    assert settlement.wait(0) is None
    assert settlement.wait(0.001) is None
    assert "open" in repr(settlement)


def test_waiting_ends_when_another_thread_settles():
    settlement = Settlement()
    results: list[Outcome | None] = []
    waiter = threading.Thread(target=lambda: results.append(settlement.wait(PATIENCE)))
    waiter.start()
    complete_settlement(settlement, Outcome.COMMITTED)
    waiter.join(PATIENCE)
    assert results == [Outcome.COMMITTED]


def test_awaiting_ends_when_another_thread_settles():
    async def wait_for(settlement: Settlement) -> Outcome:
        thread = threading.Thread(target=complete_settlement, args=[settlement, Outcome.LOST])
        asyncio.get_running_loop().call_soon(thread.start)
        outcome = await settlement
        thread.join(PATIENCE)
        return outcome

    assert asyncio.run(wait_for(Settlement())) is Outcome.LOST


def test_awaiting_what_is_settled():
    async def wait_for(settlement: Settlement) -> list[Outcome]:
        return [await settlement, await settlement]

    settlement = Settlement()
    complete_settlement(settlement, Outcome.IN_DOUBT)
    assert asyncio.run(wait_for(settlement)) == [Outcome.IN_DOUBT, Outcome.IN_DOUBT]


def test_giving_up_the_wait_leaves_the_settlement_alone():
    """Whoever settles must not fail because somebody has stopped waiting."""

    async def give_up(settlement: Settlement) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_await(settlement), 0.001)

    settlement = Settlement()
    asyncio.run(give_up(settlement))
    assert settlement.outcome is None
    complete_settlement(settlement, Outcome.COMMITTED)
    assert settlement.outcome is Outcome.COMMITTED


async def _await(settlement: Settlement) -> Outcome:
    return await settlement


def test_whoever_begins_to_wait_while_it_is_settled_learns_the_outcome():
    for _ in range(200):
        settlement = Settlement()
        together = threading.Barrier(3, timeout=PATIENCE)
        results: list[Outcome | None] = []

        def wait(settlement=settlement, together=together, results=results) -> None:
            together.wait()
            results.append(settlement.wait(PATIENCE))

        waiters = [threading.Thread(target=wait) for _ in range(2)]
        for waiter in waiters:
            waiter.start()
        together.wait()
        complete_settlement(settlement, Outcome.COMMITTED)
        for waiter in waiters:
            waiter.join(PATIENCE)
        assert results == [Outcome.COMMITTED] * 2


class Interrupted:
    """A unit over whose end a signal handler raises."""

    def commit(self, *, confirmed: bool) -> None:
        raise KeyboardInterrupt

    def rollback(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("end", "outcome"), [("commit", Outcome.IN_DOUBT), ("rollback", Outcome.LOST)])
def test_nobody_waits_for_an_end_that_was_interrupted(end, outcome):
    work = UnitOfWork(Interrupted())
    settlement = work.settlement
    with pytest.raises(KeyboardInterrupt):
        getattr(work, end)()
    assert settlement.outcome is outcome
