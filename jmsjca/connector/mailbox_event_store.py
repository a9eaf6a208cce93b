"""An event store in a mailbox of an IMAP server: one mail per event, which is moved when its status changes."""

import hashlib
import imaplib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as mail_policy
from typing import Any, cast

from jmsjca.connector.business_objects import BusinessObject
from jmsjca.connector.data_handlers import DataHandler, data_handler
from jmsjca.connector.definitions import BusinessObjectDefinitions
from jmsjca.connector.event_store import EventRecord, RecordStatus
from jmsjca.errors import ConnectionLostError, DataHandlerError, NotSupportedError, StoreError, excerpt

__all__ = ["MailboxEventStore"]

_HEADER = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
_WHOLE = "BODY.PEEK[]"


class MailboxEventStore:
    """An event store in a mailbox.

    Mails are taken in the order of their arrival, and moved to a mailbox per status. The business object is the first
    attachment, or else the text. The id of an event is the Message-ID of its mail. The server needs the extension
    UIDPLUS (RFC 4315). Without MOVE (RFC 6851), a mail is copied and then deleted; a crash between the two leaves both.

    Args:
        connect: Returns a connection to the server, logged in. It is called again after a lost connection.
        handler: Converts the business objects; None for the data handler of the MIME type of each one.
        definitions: The definitions, for the data handlers of MIME types; None for none.
        mailbox: The mailbox with the events.
        prefix: The beginning of the names of the other mailboxes, which the store creates: ``events.in_progress``,
            ``events.success`` and so on.
    """

    def __init__(
        self,
        connect: Callable[[], imaplib.IMAP4],
        handler: DataHandler | None = None,
        *,
        definitions: BusinessObjectDefinitions | None = None,
        mailbox: str = "INBOX",
        prefix: str = "events.",
    ) -> None:
        self._connect = connect
        self._handler = handler
        self._definitions = definitions
        self._handlers: dict[str, DataHandler] = {}
        self._names = {status: f"{prefix}{status.name.lower()}" for status in RecordStatus}
        self._names[RecordStatus.READY_FOR_POLL] = mailbox
        self._client: imaplib.IMAP4 | None = None
        self._recovered: list[str] = []

    def in_progress(self) -> int:
        """Return the number of mails in progress.

        Raises:
            ConnectionLostError: The connection failed; the next call opens another one. So do the other methods.
            StoreError: The server refused a command. So do the other methods.
            NotSupportedError: The server lacks UIDPLUS. So do the other methods.
        """
        with self._opened() as client:
            return len(self._mails(client, RecordStatus.IN_PROGRESS))

    def recover(self) -> int:
        """Move the mails in progress back to the mailbox, and return their number. They are claimed first."""
        self._recovered = self._move_all(RecordStatus.IN_PROGRESS)
        return len(self._recovered)

    def claim(self, limit: int) -> Sequence[EventRecord]:
        """Move the next mails to the mailbox of those in progress, and return their records.

        Args:
            limit: The maximum number.
        """
        with self._opened() as client:
            waiting = self._mails(client, RecordStatus.READY_FOR_POLL)
            # A mail that is moved back is the last one of its mailbox, although its event is the oldest.
            mails = sorted(waiting, key=self._recovered.__contains__, reverse=True)[:limit]
            return [record for mail in mails if (record := self._claimed(client, mail)) is not None]

    def business_object(self, record: EventRecord) -> BusinessObject | None:
        """Return the business object of a mail; None if the mail was removed.

        Raises:
            DataHandlerError: The mail has no content, or it cannot be converted.
            ConfigurationError: There is no data handler for its MIME type.
        """
        with self._opened() as client:
            self._select(client, RecordStatus.IN_PROGRESS)
            content = _fetched(client, record.object_key, _WHOLE)
        return None if content is None else self._converted(content)

    def finish(self, record: EventRecord, status: RecordStatus, comment: str = "") -> None:
        """Move a mail to the mailbox of its final status.

        Args:
            record: The record.
            status: The status.
            comment: Not stored, because mails cannot be changed; the log has it.
        """
        del comment
        with self._opened() as client:
            self._select(client, RecordStatus.IN_PROGRESS)
            self._move(client, record.object_key, status)

    def resubmit(self, *statuses: RecordStatus) -> int:
        """Move the mails with these statuses back to the mailbox, and return their number."""
        return sum(len(self._move_all(status)) for status in statuses)

    def close(self) -> None:
        """Log out. Idempotent; another call of a method connects again."""
        client, self._client = self._client, None
        if client is not None:
            _log_out(client)

    @contextmanager
    def _opened(self) -> Generator[imaplib.IMAP4]:
        try:
            if self._client is None:
                self._client = self._prepared(self._connect())
            yield self._client
        except (imaplib.IMAP4.abort, OSError) as error:
            self.close()
            raise ConnectionLostError(f"The connection to the mail server failed: {error}") from error
        except imaplib.IMAP4.error as error:
            raise StoreError(f"The mail server refused a command: {error}") from error

    def _prepared(self, client: imaplib.IMAP4) -> imaplib.IMAP4:
        if "UIDPLUS" not in client.capabilities:
            _log_out(client)
            raise NotSupportedError(
                "The mail server lacks the extension UIDPLUS (RFC 4315), without which a mail cannot be moved exactly. "
                f"It has {excerpt(', '.join(client.capabilities), 200)}."
            )
        for name in self._names.values():
            client.create(_quoted(name))  # a server answers NO if it is there; the first use shows any other problem
        return client

    def _select(self, client: imaplib.IMAP4, status: RecordStatus) -> None:
        _checked(client.select(_quoted(self._names[status])), f"select {self._names[status]}")

    def _mails(self, client: imaplib.IMAP4, status: RecordStatus) -> list[str]:
        """Select the mailbox of a status, and return the UIDs of its mails in the order of their arrival."""
        self._select(client, status)
        found = _checked(client.uid("SEARCH", "UNDELETED"), f"search {self._names[status]}")
        return sorted((found[0] or b"").decode().split(), key=int)

    def _claimed(self, client: imaplib.IMAP4, mail: str) -> EventRecord | None:
        header = _fetched(client, mail, _HEADER)
        whole = None if header is None or _message_id(header) else _fetched(client, mail, _WHOLE)
        moved = self._move(client, mail, RecordStatus.IN_PROGRESS)
        if header is None or moved is None:  # another client has removed it
            return None
        event_id = _message_id(header) or f"sha256:{hashlib.sha256(whole or b'').hexdigest()}"
        return EventRecord(event_id, "", "", moved)

    def _move(self, client: imaplib.IMAP4, mail: str, status: RecordStatus) -> str | None:
        """Move a mail of the selected mailbox, and return its new UID; None if it is not there."""
        target = _quoted(self._names[status])
        if "MOVE" in client.capabilities:
            _checked(client.uid("MOVE", mail, target), f"move a mail to {target}")
            return _new_uid(client)
        _checked(client.uid("COPY", mail, target), f"copy a mail to {target}")
        moved = _new_uid(client)
        _checked(client.uid("STORE", mail, "+FLAGS.SILENT", r"(\Deleted)"), "delete a mail")
        _checked(client.uid("EXPUNGE", mail), "delete a mail")
        return moved

    def _move_all(self, status: RecordStatus) -> list[str]:
        with self._opened() as client:
            moved = [self._move(client, mail, RecordStatus.READY_FOR_POLL) for mail in self._mails(client, status)]
        return [mail for mail in moved if mail is not None]

    def _converted(self, content: bytes) -> BusinessObject:
        part = _content_part(message_from_bytes(content, policy=mail_policy))
        body: object = part.get_content()
        if not isinstance(body, str | bytes):
            raise DataHandlerError(f"The mail has {part.get_content_type()} as its content, which is no text or bytes.")
        return self._handler_of(part.get_content_type()).to_business_object(body)

    def _handler_of(self, mime_type: str) -> DataHandler:
        if self._handler is not None:
            return self._handler
        if mime_type not in self._handlers:
            self._handlers[mime_type] = data_handler(mime_type, self._definitions)
        return self._handlers[mime_type]


def _log_out(client: imaplib.IMAP4) -> None:
    """End a connection, which may be lost already."""
    try:
        with suppress(imaplib.IMAP4.error, OSError):
            client.logout()
    finally:
        with suppress(OSError):
            client.shutdown()


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _checked(answer: tuple[str, list[bytes | None]], action: str) -> list[bytes | None]:
    kind, data = answer
    if kind != "OK":
        raise imaplib.IMAP4.error(f"{action}: {kind} {excerpt(data, 200)}")
    return data


def _fetched(client: imaplib.IMAP4, mail: str, part: str) -> bytes | None:
    """Return a part of a mail of the selected mailbox; None if there is no such mail."""
    items: list[Any] = _checked(client.uid("FETCH", mail, f"({part})"), "fetch a mail")
    for item in items:
        if isinstance(item, tuple):  # a response and its literal
            return cast("tuple[bytes, bytes]", item)[1]
    return None


def _new_uid(client: imaplib.IMAP4) -> str | None:
    """Return the UID that the last mail has in the mailbox it was copied to: the end of ``[COPYUID …]``."""
    _, data = client.response("COPYUID")
    return cast("bytes", data[-1]).split()[-1].decode() if data and data[-1] else None


def _message_id(header: bytes) -> str | None:
    value = message_from_bytes(header)["Message-ID"]
    return str(value).strip() if value else None


def _content_part(mail: EmailMessage) -> EmailMessage:
    if not mail.is_multipart():
        return mail
    found = next(iter(mail.iter_attachments()), None) or mail.get_body(("plain", "html"))
    if found is None:
        raise DataHandlerError("The mail has neither an attachment nor a text.")
    return cast("EmailMessage", found)
