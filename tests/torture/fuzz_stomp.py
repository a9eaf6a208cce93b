"""Random bytes for the reader of STOMP frames, in random pieces: ``python -m tests.torture.fuzz_stomp --runs 200000``.

Every frame that a slow and independent reader reads must be read the same, and what that one takes for no STOMP must
end the connection. Nothing else may be raised, and nothing may take longer than a second. atheris, guided by the
branches that were taken, finds the inputs; without it there is no fuzzing, and the tests say so.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from jmsjca.errors import ConnectionLostError
from tests.unit.providers.stomp.reference_parser import read_all

MAX_BODY = 100
MAX_INPUT = 200
WORDS = (
    *("CONNECTED", "MESSAGE", "RECEIPT", "ERROR", "content-length:", "destination:", "message-id:", "subscription:"),
    *(
        "receipt-id:",
        "version:",
        "x-amqp-1.0-",
        "ack:",
        "\\x0a\\x0a",
        "\\x0d\\x0a\\x0d\\x0a",
        "\\x00",
        "\\\\c",
        "\\\\n",
    ),
    *(
        "\\\\r",
        "\\\\\\\\",
        "\\\\t",
        "\\xc3\\xa9",
        "content-length:5\\x0a",
        "content-length:0\\x0a",
        "content-length:100\\x0a",
    ),
)
SEEDS = (
    b"CONNECTED\nversion:1.2\nserver:x\n\n\0",
    b"MESSAGE\ndestination:/queue/q\nmessage-id:1\nsubscription:s\n\nbody\0\n",
    b"MESSAGE\r\ndestination:a\\c\\n\r\nmessage-id:1\r\nsubscription:s\r\ncontent-length:3\r\n\r\na\0b\0\r\n",
    b"RECEIPT\nreceipt-id:1\n\n\0\nERROR\nmessage:m\\x\n\nwhy\0",
    b"MESSAGE\ndestination:q\nmessage-id:1\nsubscription:s\nx-amqp-1.0-p:\0Ss\xff\n\n\0",
)


def check(data):
    """Read one input with both readers; an AssertionError tells where they differ."""
    from jmsjca.providers.stomp.protocol.frames import FrameParser

    version, cut, data = ("1.1", "1.2")[data[:1] > b"\x7f"], data[1] % 40 if data[1:] else 0, data[2:]
    expected, broken = read_all(data, version, MAX_BODY)
    parser, frames, failed = FrameParser(MAX_BODY), [], False
    parser.version = version
    try:
        for piece in _pieces(data, cut or MAX_INPUT):
            frames += map(_plain, parser.feed(piece))
            frames += map(_plain, parser.feed(b""))  # what was whole came before what breaks the protocol
    except ConnectionLostError:
        failed = True
    assert failed is broken, (data, version, cut)
    assert frames == expected, (data, version, cut)


def _plain(frame):
    return frame.cmd, dict(frame.headers), frame.body


def _pieces(data, size):
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def fuzz(runs, seed, folder):
    """Hand over to atheris, which ends the process: with code 0 if nothing was found."""
    import atheris

    with atheris.instrument_imports(include=["jmsjca.providers.stomp.protocol.frames"]):
        import jmsjca.providers.stomp.protocol.frames  # noqa: F401
    (folder / "words").write_text("".join(f'"{word}"\n' for word in WORDS))
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, frame in enumerate(SEEDS):
        for version in (b"\0", b"\xff"):
            (seeds / f"{number}{version.hex()}").write_bytes(version + b"\x05" + frame)
    options = [f"-runs={runs}", f"-seed={seed}", f"-max_len={MAX_INPUT}", "-timeout=1", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *options, f"-dict={folder / 'words'}", "-print_final_stats=1", str(seeds)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzz(told.runs, told.seed, Path(folder))
