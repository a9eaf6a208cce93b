"""A scripted IMAP server in this process: mailboxes in memory, and connections that break where a test says so."""

import re
import socketserver
import threading
from collections.abc import Callable, Iterator

__all__ = ["ImapServer"]

_COMMAND = re.compile(rb"(\S+) (?:UID )?(\S+) ?(.*?)\r\n")


class ImapServer:
    """A server with the commands that an event store uses (RFC 3501, 4315, 6851).

    Attributes:
        port: The port on the loopback interface.
        mailboxes: The mails by UID, by the name of the mailbox.
        cut: "before" or "after", and a part of the command around which the connection breaks, once; None for none.
    """

    def __init__(self, extensions: str = "UIDPLUS MOVE") -> None:
        self.extensions = extensions
        self.mailboxes: dict[str, dict[int, bytes]] = {"INBOX": {}}
        self.cut: tuple[str, str] | None = None
        self._uids = iter(range(1, 1000))
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _Conversation(owner, self.rfile.readline, self.wfile.write).run()

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def deliver(self, mailbox: str, mail: bytes) -> int:
        """Put a mail into a mailbox; returns its UID."""
        uid = next(self._uids)
        self.mailboxes[mailbox][uid] = mail
        return uid

    def breaks(self, moment: str, command: str) -> bool:
        """Return whether the connection breaks here, which it does once."""
        found = self.cut is not None and self.cut[0] == moment and self.cut[1] in command
        if found:
            self.cut = None
        return found

    def close(self) -> None:
        """End the server. Idempotent."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


class _Conversation:
    """One connection."""

    def __init__(self, server: ImapServer, read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
        self._server = server
        self._read = read
        self._write = write
        self._selected = ""
        self._deleted: set[int] = set()

    def run(self) -> None:
        self._write(b"* OK ready\r\n")
        while match := _COMMAND.fullmatch(self._read()):
            tag, command, rest = match[1], match[2].decode().upper(), match[3].decode()
            if self._server.breaks("before", match[0].decode()):
                return
            answer = b"".join(line + b"\r\n" for line in self._answers(command, rest))
            if self._server.breaks("after", match[0].decode()):
                return
            refused = answer.startswith(b"NO ")
            self._write(tag + b" " + answer if refused else answer + tag + b" OK done\r\n")
            if command == "LOGOUT":
                return

    def _answers(self, command: str, rest: str) -> Iterator[bytes]:
        if command in {"COPY", "MOVE"}:
            uid, target = rest.split(" ", 1)
            yield from self._copied(int(uid), _unquoted(target), keep=command == "COPY")
        elif command == "SELECT" and _unquoted(rest) not in self._server.mailboxes:
            yield b"NO no such mailbox"
        elif command in {"CAPABILITY", "SELECT", "CREATE", "SEARCH", "FETCH", "STORE", "EXPUNGE", "LOGOUT"}:
            yield from getattr(self, f"_{command.lower()}")(rest)

    def _capability(self, _: str) -> Iterator[bytes]:
        yield f"* CAPABILITY IMAP4rev1 {self._server.extensions}".encode()

    def _select(self, rest: str) -> Iterator[bytes]:
        self._selected, self._deleted = _unquoted(rest), set()
        yield f"* {len(self._mails)} EXISTS".encode()

    def _create(self, rest: str) -> Iterator[bytes]:
        if _unquoted(rest) in self._server.mailboxes:
            yield b"NO it exists"
        self._server.mailboxes.setdefault(_unquoted(rest), {})

    def _search(self, _: str) -> Iterator[bytes]:
        yield f"* SEARCH {' '.join(str(uid) for uid in reversed(self._mails) if uid not in self._deleted)}".encode()

    def _fetch(self, rest: str) -> Iterator[bytes]:
        uid = int(rest.split(" ", 1)[0])
        mail = self._mails.get(uid)
        if mail is not None:
            found = re.search(rb"(?im)^message-id:.*\r?\n", mail)
            shown = mail if "HEADER" not in rest else (found[0] if found else b"") + b"\r\n"
            yield f"* 1 FETCH (UID {uid} BODY[] {{{len(shown)}}}".encode() + b"\r\n" + shown + b")"

    def _store(self, rest: str) -> Iterator[bytes]:
        self._deleted.add(int(rest.split(" ", 1)[0]))
        yield from ()

    def _expunge(self, rest: str) -> Iterator[bytes]:
        if int(rest) in self._deleted:
            self._mails.pop(int(rest), None)
            yield b"* 1 EXPUNGE"

    def _logout(self, _: str) -> Iterator[bytes]:
        yield b"* BYE"

    def _copied(self, uid: int, target: str, *, keep: bool) -> Iterator[bytes]:
        mail = self._mails.get(uid)
        if mail is not None:
            made = self._server.deliver(target, mail)
            yield f"* OK [COPYUID 1 {uid} {made}] done".encode()
            if not keep:
                del self._mails[uid]
                yield b"* 1 EXPUNGE"

    @property
    def _mails(self) -> dict[int, bytes]:
        return self._server.mailboxes[self._selected]


def _unquoted(name: str) -> str:
    return name.strip().strip('"')
