"""The bridge: the Java process that runs JMS clients, and the frames by which it is asked.

A frame is a length of 32 bits and its payload; numbers are big-endian. A request has an operation, the number of the
request, and the number of the connection; a reply has its kind and the number of the request. The process is started
with the first connection of this process, shared by all its connections, and ends when its standard input ends.
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

from jmsjca.errors import ConnectionLostError, JMSError, ProviderNotInstalledError
from jmsjca.forking import reset_in_child
from jmsjca.log_records import get_logger

__all__ = [
    "MAX_FRAME",
    "Bridge",
    "BridgeReplyError",
    "Channel",
    "FrameReader",
    "build",
    "pack_bytes",
    "pack_text",
    "parts_of_bridge",
    "shared_bridge",
]

logger = get_logger("jmsjca.java")

MAX_FRAME = 1 << 30
_HEAP = "-Xmx512m"
_NO_FILES = "-Dcom.ibm.msg.client.commonservices.log.status=OFF"  # IBM MQ would write mqjms.log.0 into the folder
_OPTIONS = (_HEAP, "-XX:+UseSerialGC", "-Xshare:auto", "-XX:+ExitOnOutOfMemoryError", _NO_FILES)
_LOG_LINES, _LOG_CHARACTERS = 20, 2000
_SIZE, _REQUEST, _REPLY = struct.Struct(">I"), struct.Struct(">IBII"), struct.Struct(">BI")
_DONE, _FAILED, _LOST = range(3)
_OLD_JAVA = "UnsupportedClassVersionError"
_WAIT_FOR_EXIT = 5.0  # seconds
_NULL = b"\xff\xff\xff\xff"
_I32, _I64 = struct.Struct(">i"), struct.Struct(">q")


class FrameReader:
    """Reads the body of a frame. Lengths are compared with what is there.

    Args:
        data: The frame.
        position: The beginning of its body.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def u8(self) -> int:
        """Read a byte."""
        value = self.data[self.position]
        self.position += 1
        return value

    def i64(self) -> int:
        """Read a number of 64 bits."""
        return int(self.number(_I64))

    def count(self) -> int:
        """Read a number of elements, each of at least one byte."""
        number = int(self.number(_I32))
        if not 0 <= number <= len(self.data) - self.position:
            raise ValueError("a frame has a wrong number of elements")
        return number

    def bytes(self) -> bytes | None:
        """Read bytes with their length; None if they are absent."""
        size, start = self.number(_I32), self.position
        if size == -1:
            return None
        if not 0 <= size <= len(self.data) - start:
            raise ValueError("a frame has a wrong length")
        self.position = start + size
        return self.data[start : self.position]

    def text(self) -> str | None:
        """Read a text with its length; None if it is absent."""
        encoded = self.bytes()
        return None if encoded is None else encoded.decode()

    def number(self, kind: struct.Struct) -> Any:
        """Read one value of a format."""
        (value,) = kind.unpack_from(self.data, self.position)
        self.position += kind.size
        return value


def pack_bytes(value: bytes | None) -> bytes:
    """Return bytes with their length."""
    return _NULL if value is None else _SIZE.pack(len(value)) + value


def pack_text(value: str | None) -> bytes:
    """Return a text with its length."""
    return _NULL if value is None else pack_bytes(value.encode())


class BridgeReplyError(Exception):
    """A request failed in the client.

    Attributes:
        stage: When: 0 before anything was committed, 1 it was rolled back, 2 it may be committed.
        kind: The meaning that JMS gives it, as one word; empty if it is any other exception.
        text: Its class and its message.
        causes: The class, the message and the code of the exception and of its causes.
    """

    def __init__(self, frame: FrameReader) -> None:
        self.stage = frame.u8()
        self.kind = frame.text() or ""
        self.text = frame.text() or ""
        self.causes = [(frame.text() or "", frame.text() or "", frame.text()) for _ in range(frame.count())]
        super().__init__(self.text)


class Bridge:
    """The Java process.

    Args:
        java: The command.
        archive: The jar.
    """

    def __init__(self, java: str, archive: Path) -> None:
        command = [java, *_OPTIONS, "-cp", str(archive), "jmsjca.bridge.Main", str(MAX_FRAME)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  # no user's text
        self._input, self._output, self._errors = (
            cast("IO[bytes]", stream) for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._pending: dict[int, tuple[int, Future[FrameReader]]] = {}
        self._channels: dict[int, Channel] = {}
        self._secrets: set[str] = set()
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self.end_reason: JMSError | None = None
        reset_in_child(self, Bridge._forget)
        self._log_thread = self._start(self._read_log)
        self._start(self._read_replies)

    def channel(self, on_lost: Callable[[JMSError], None], *secrets: str) -> "Channel":
        """Return a channel for a new connection.

        Args:
            on_lost: Called when the connection or the bridge is lost.
            secrets: Texts that the log of the bridge must not show.
        """
        self._secrets.update(secrets)
        channel = Channel(self, next(self._numbers), on_lost)
        self._channels[channel.number] = channel
        return channel

    def request(self, operation: int, channel: int, body: Sequence[bytes]) -> "Future[FrameReader]":
        """Send a request.

        Raises:
            ConnectionLostError: The bridge has ended.
        """
        number, reply = next(self._numbers), Future[FrameReader]()
        self._pending[number] = channel, reply
        size = _REQUEST.size - _SIZE.size + sum(map(len, body))
        head = _REQUEST.pack(size, operation, number, channel)
        try:
            with self._lock:
                self._input.write(b"".join((head, *body)))
                self._input.flush()
        except (OSError, ValueError) as error:  # ValueError: it was closed
            self._pending.pop(number, None)
            raise ConnectionLostError(f"The Java process of JMS clients has ended: {error}.") from error
        if self.end_reason is not None and number in self._pending:
            self._pending.pop(number, None)
            raise ConnectionLostError(str(self.end_reason))
        return reply

    def forget(self, channel: int, reason: JMSError) -> None:
        """Remove a channel, and fail its requests that wait."""
        self._channels.pop(channel, None)
        for number, (owner, reply) in list(self._pending.items()):
            if owner == channel:
                self._pending.pop(number, None)
                _fail(reply, ConnectionLostError(str(reason)))

    @property
    def runs(self) -> bool:
        """True unless the process has ended."""
        return self.end_reason is None and self._process.poll() is None

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def _start(self, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name="jmsjca-java", daemon=True)
        thread.start()
        return thread

    def _read_replies(self) -> None:
        try:
            while len(head := self._output.read(_SIZE.size)) == _SIZE.size:
                (size,) = _SIZE.unpack(head)
                if not _REPLY.size <= size <= MAX_FRAME:
                    break
                payload = self._output.read(size)
                if len(payload) < size:
                    break
                self._dispatch(payload)
        except Exception:
            logger.exception("A frame of the Java process of JMS clients cannot be read; the process is ended.")
        finally:
            self._end()

    def _dispatch(self, payload: bytes) -> None:
        kind, number = _REPLY.unpack_from(payload)
        frame = FrameReader(payload, _REPLY.size)
        if kind == _LOST:
            if channel := self._channels.get(number):
                channel.lost(ConnectionLostError(f"The connection broke: {BridgeReplyError(frame).text}"))
            return
        _, reply = self._pending.pop(number, (0, None))
        if reply is None:  # its caller has given up
            return
        if kind == _DONE:
            reply.set_result(frame)
        else:
            reply.set_exception(BridgeReplyError(frame))

    def _end(self) -> None:
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_WAIT_FOR_EXIT)
        self._log_thread.join(_WAIT_FOR_EXIT)
        with self._lock, suppress(OSError):  # a request that is being written fails first
            self._input.close()
        self._output.close()
        self._errors.close()
        self.end_reason = ConnectionLostError(f"The Java process of JMS clients has ended{self._reason()}")
        for channel in list(self._channels.values()):
            channel.lost(self.end_reason)
        for number in list(self._pending):
            _, reply = self._pending.pop(number, (0, None))
            if reply is not None:
                _fail(reply, ConnectionLostError(str(self.end_reason)))

    def _reason(self) -> str:
        if any(_OLD_JAVA in line for line in self._log):
            return ": it needs Java 17 or later. Set JAVA_HOME, or install it."
        last = f": {self._log[-1]}" if self._log else ""
        return f" (status {self._process.returncode}){last}"

    def _read_log(self) -> None:
        while line := self._errors.readline(_LOG_CHARACTERS):
            text = line.decode(errors="replace").rstrip()
            for secret in self._secrets:
                text = text.replace(secret, "***")
            self._log.append(text)
            logger.debug("Java: %s", text)

    def _forget(self) -> None:
        """Close the pipes in a forked child, which would keep the process alive after its parent."""
        for stream in (self._input, self._output, self._errors):
            with suppress(OSError):
                os.close(stream.fileno())
        self._process.returncode = 0  # another process's child: there is nothing to wait for


_CLOSED = ConnectionLostError("This connection was closed.")


class Channel:
    """The requests of one connection.

    Args:
        bridge: The bridge.
        number: The number of the connection.
        on_lost: Called once if it is lost.

    Attributes:
        number: The same.
    """

    def __init__(self, bridge: Bridge, number: int, on_lost: Callable[[JMSError], None]) -> None:
        self._bridge = bridge
        self._on_lost = on_lost
        self._is_lost = self._is_closed = False
        self.number = number

    def start(self, operation: int, *body: bytes) -> "Future[FrameReader]":
        """Send a request, and return its reply to wait for. It may raise `BridgeReplyError`.

        Raises:
            ConnectionLostError: The bridge has ended. If the connection is closed, the reply raises it.
        """
        reply = self._bridge.request(operation, self.number, body)
        if self._is_closed:
            self._bridge.forget(self.number, _CLOSED)
        return reply

    def lost(self, reason: JMSError) -> None:
        """Report that the connection is lost, once, on a thread of its own: the caller reads the replies."""
        if self._is_lost:
            return
        self._is_lost = True
        self._bridge.forget(self.number, reason)
        threading.Thread(target=self._on_lost, args=(reason,), name="jmsjca-java-lost", daemon=True).start()

    def close(self) -> None:
        """Forget the connection, which is closed."""
        self._is_lost = self._is_closed = True
        self._bridge.forget(self.number, _CLOSED)


def _fail(reply: "Future[FrameReader]", error: JMSError) -> None:
    with suppress(Exception):  # its reply came in the same moment
        reply.set_exception(error)


class _Shared:
    """The bridge of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bridge: Bridge | None = None
        reset_in_child(self, _Shared.__init__)

    def get(self) -> Bridge:
        """Return the bridge; start it unless it runs."""
        with self._lock:
            if self._bridge is None or not self._bridge.runs:
                self._bridge = Bridge(_find_java(), _find_jar())
            return self._bridge


def parts_of_bridge() -> Iterator[tuple[str, str]]:
    """Yield the parts of the bridge, as name and place.

    Raises:
        ProviderNotInstalledError: One is missing.
    """
    java = _find_java()
    asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603  # no user's text
    yield "Java", f"{asked.stderr.partition(chr(10))[0]}, {java}"
    yield "bridge to Java", str(_find_jar())


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise ProviderNotInstalledError("JMS clients of Java need Java 17 or later: install it, or set JAVA_HOME.")
    return found


def _find_jar() -> Path:
    try:
        return _cached_jar()
    except FileNotFoundError as error:
        raise ProviderNotInstalledError(
            "This installation of jmsjca was built without a JDK, so it has no bridge to Java: install the wheel from"
            f" the package index, or build it where there is a JDK. {re.sub(r'[.]*$', '.', str(error))}"
        ) from error
    except RuntimeError as error:
        raise ProviderNotInstalledError(str(error)) from error


_SOURCES = Path(__file__).with_name("bridge")
_JAR = Path(__file__).with_name("bridge.jar")
"""The jar of the wheel; a checkout has none."""

_NAMESPACES = ("jakarta", "javax")
_API = re.compile(r"^(?=public (?:interface|class) (\w+))", re.MULTILINE)
_RELEASE = "17"


def _cached_jar() -> Path:
    """Return the jar; in a checkout it is compiled into the user's cache unless it is there.

    Raises:
        FileNotFoundError: The installation has no jar, and it cannot be compiled because there is no ``javac``.
        RuntimeError: ``javac`` failed.
    """
    if _JAR.exists():
        return _JAR
    import hashlib  # loads OpenSSL, in a checkout only

    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _sources())).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jar = Path(os.environ.get("JMSJCA_CACHE") or base / "jmsjca") / "bridge" / f"bridge-{digest}.jar"
    if not jar.exists():
        build(jar)
    return jar


def build(jar: Path) -> None:
    """Compile the bridge, once for each name space of JMS, into a jar, which appears whole or not at all.

    Raises:
        FileNotFoundError: There is no ``javac``.
        RuntimeError: ``javac`` failed.
    """
    compiler = _find_compiler()
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        classes = Path(folder) / "classes"
        _compile(compiler, sorted(_SOURCES.glob("*.java")), classes)
        for namespace in _NAMESPACES:
            _compile(compiler, _renamed(namespace, Path(folder) / namespace), classes / namespace, classes)
            shutil.rmtree(classes / namespace / namespace)  # the API is the client's own
        draft = Path(folder) / jar.name
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(classes.rglob("*.class")):
                archive.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix()), path.read_bytes())
        draft.replace(jar)


def _sources() -> list[Path]:
    return sorted([*_SOURCES.rglob("*.java"), _SOURCES / "api.txt"])


def _find_compiler() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise FileNotFoundError(f"There is no javac: install a JDK {_RELEASE} or later, or set JAVA_HOME.")
    return found


def _renamed(namespace: str, folder: Path) -> list[Path]:
    """Write the sources for a name space, with the API as far as they use it; return their paths."""
    files = dict(_api(namespace))
    files |= {f"jmsjca/jms/{path.name}": path.read_text() for path in sorted((_SOURCES / "jms").glob("*.java"))}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("jakarta.jms", f"{namespace}.jms"))
    return [folder / name for name in files]


def _api(namespace: str) -> Iterator[tuple[str, str]]:
    _, *parts = _API.split((_SOURCES / "api.txt").read_text())
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        yield f"{namespace}/jms/{name}.java", f"package jakarta.jms;\n{text}"


def _compile(compiler: str, sources: list[Path], into: Path, *classpath: Path) -> None:
    quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    command = [compiler, *quick, "--release", _RELEASE, "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", str(into)]
    options = ["-cp", os.pathsep.join(map(str, classpath))] if classpath else []
    told = subprocess.run(  # noqa: S603  # the compiler that the user has installed
        [*command, *options, *map(str, sources)], check=False, capture_output=True, text=True
    )
    if told.returncode:
        raise RuntimeError(f"The bridge to Java cannot be compiled by {compiler}:\n{told.stderr}")


_shared = _Shared()
shared_bridge = _shared.get
