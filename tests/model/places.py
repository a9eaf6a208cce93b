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
        self._settings: dict[Destination, DestinationSettings] = {}
        self._ages = count()

    def queue(self, queue: Queue) -> Box:
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
        if key(what) not in self.boxes:
            raise InvalidDestinationError
        if self.boxes[key(what)].consumers:
            raise IllegalStateError
        del self.boxes[key(what)]

    def configure(self, address: Destination, settings: DestinationSettings) -> None:
        self._settings[address] = settings
        for box in self.boxes.values():
            box.settings = self._of(box.address)

    def expire(self, now: int) -> None:
        expired = [m for box in self.boxes.values() for m in box.waiting() if m.is_stale(now)]
        for message in sorted(expired, key=lambda m: (m.expires, m.age)):
            self.move(message, message.box.settings.expiry)

    def _of(self, address: Destination) -> DestinationSettings:
        return self._settings.get(address, DestinationSettings())
