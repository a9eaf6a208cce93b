"""Where the model's messages lie: all queues and subscriptions, with the settings of their addresses."""

from itertools import count

from jmsjca.config import DestinationSettings
from jmsjca.destinations import Destination, Queue, Subscription
from jmsjca.errors import IllegalStateError, InvalidDestinationError
from tests.model.boxes import Box, Message
from tests.model.words import Letter, Source, key

__all__ = ["Places"]


class Places:
    """All boxes, by their names."""

    def __init__(self) -> None:
        self.boxes: dict[str, Box] = {}
        self._temporaries: dict[Destination, str] = {}
        self._settings: dict[Destination, DestinationSettings] = {}
        self._ages = count()

    def make_temporary(self, what: Destination, connection: str) -> None:
        self._temporaries[what] = connection

    def exists(self, to: Destination) -> bool:
        return not to.temporary or to in self._temporaries

    def check_owned(self, what: Source, connection: str) -> None:
        """A temporary destination is consumed and removed only by the connection that made it."""
        if isinstance(what, Destination) and what.temporary and self._temporaries.get(what) != connection:
            raise InvalidDestinationError

    def drop_temporaries(self, connection: str) -> None:
        for what in [what for what, owner in self._temporaries.items() if owner == connection]:
            del self._temporaries[what]
            self.boxes.pop(key(what), None)

    def queue(self, queue: Destination) -> Box:
        return self.boxes.setdefault(key(queue), Box(queue, settings=self._of(queue)))

    def subscribe(self, wanted: Subscription, selector: str | None, spared: str | None) -> Box:
        """Find a subscription; one that is changed is made anew, without messages."""
        made = Box(wanted.topic, wanted, selector, spared, self._of(wanted.topic))
        box = self.boxes.get(key(wanted), made)
        if box.refuses(made):
            raise IllegalStateError
        self.boxes[key(wanted)] = box if box.is_like(made) else made
        return self.boxes[key(wanted)]

    def put(
        self, letter: Letter, to: Destination, *, due: int = 0, expires: int | None = None, sender: str | None = None
    ) -> None:
        """Lay a letter into a queue, or a copy into each subscription that wants it."""
        boxes = [self.queue(to)] if isinstance(to, Queue) else [b for b in self.boxes.values() if b.address == to]
        for box in boxes:
            if box.wants(letter, sender):
                box.messages.append(Message(letter, box, next(self._ages), due, expires))

    def move(self, message: Message, to: Destination | None) -> None:
        """Take a message away, to a dead-letter or expiry destination if there is one."""
        message.box.messages.remove(message)
        if to is not None and message.box in self.boxes.values():
            self.put(message.letter, to)

    def end(self, box: Box) -> None:
        self.boxes = {name: other for name, other in self.boxes.items() if other is not box}

    def purge(self, source: Source, now: int) -> range:
        """Remove what waits, and tell how many messages that may be."""
        if key(source) not in self.boxes:
            return range(1)
        box = self.boxes[key(source)]
        before = box.view(now)
        box.messages = [m for m in box.messages if m.holder]
        return range(before.ready + before.scheduled, before.ready + before.scheduled + before.stale + 1)

    def remove(self, what: Source) -> None:
        box = self.boxes.get(key(what))
        if box is None and what not in self._temporaries:
            raise InvalidDestinationError
        if box and box.consumers:
            raise IllegalStateError
        self.boxes.pop(key(what), None)
        if isinstance(what, Destination):
            self._temporaries.pop(what, None)

    def configure(self, address: Destination, settings: DestinationSettings) -> None:
        self._settings[address] = settings
        for box in self.boxes.values():
            box.settings = self._of(box.address)

    def is_timed(self, now: int) -> bool:
        """Tell whether time makes a difference."""
        messages = [m for box in self.boxes.values() for m in box.messages]
        return any(m.due > now or (m.expires is not None and m.expires > now) for m in messages)

    def must_expire(self, now: int) -> bool:
        """Tell whether something expired that does not just vanish, or that is mixed with what failed too often."""
        boxes = [box for box in self.boxes.values() if any(m.is_stale(now) for m in box.waiting())]
        return any(box.settings.expiry or any(map(box.failed, box.waiting())) for box in boxes)

    def expire(self, now: int) -> None:
        expired = [m for box in self.boxes.values() for m in box.waiting() if m.is_stale(now)]
        for message in sorted(expired, key=lambda m: (m.expires, m.age)):
            self.move(message, message.box.settings.expiry)

    def _of(self, address: Destination) -> DestinationSettings:
        return self._settings.get(address, DestinationSettings())
