#!/usr/bin/env bash
# Guess: stompman sends NACK for the exception classes that it is told to suppress, and an exception of another class
#   leaves the client: the "async with" block ends with it.
# Seen: the other exception is printed by the event loop at most, the client runs on, and the message gets neither
#   an ACK nor a NACK. The next message is handled and acknowledged.
# Matters: with a narrow list a message of an unforeseen error stays with this consumer until the connection ends; the
#   broker counts it as in flight, and no supervisor sees a failure.
# Versions: stompman 3.16.0, Python 3.11. The broker is a socket that answers by STOMP 1.2.
set -eu
. "$(dirname "$0")/lib.sh"
python_with stompman==3.16.0
python3 - 2>/dev/null <<'P' | expect "block ended: normally
handled: [b'suppressed', b'other', b'good']
settled: ['NACK suppressed', 'ACK good']"
import asyncio
import stompman

settled, handled = [], []


async def serve(reader, writer):
    while frame := (await reader.readuntil(b"\0")).strip(b"\0\n"):
        command, *headers = frame.decode().split("\n")
        if command in ("CONNECT", "STOMP"):
            writer.write(b"CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0")
        elif command == "SUBSCRIBE":
            number = next(line for line in headers if line.startswith("id:"))[3:].encode()
            for text in (b"suppressed", b"other", b"good"):
                writer.write(b"MESSAGE\nsubscription:%s\nack:%s\nmessage-id:%s\ndestination:q\n\n%s\0" % (number, text, text, text))
        elif command in ("ACK", "NACK"):
            settled.append(f"{command} {next(line for line in headers if line.startswith('id:'))[3:]}")
        elif command == "DISCONNECT":
            receipt = next(line for line in headers if line.startswith("receipt:"))[8:]
            writer.write(b"RECEIPT\nreceipt-id:%s\n\n\0" % receipt.encode())


async def handler(frame):
    handled.append(frame.body)
    if frame.body == b"suppressed":
        raise ValueError
    if frame.body == b"other":
        raise KeyError


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        async with stompman.Client([stompman.ConnectionParameters(host, port, "a", "b")]) as client:
            subscription = await client.subscribe(
                "q", handler, ack="client-individual", on_suppressed_exception=lambda *_: None, suppressed_exception_classes=(ValueError,)
            )
            await asyncio.sleep(2)
            await subscription.unsubscribe()
        print("block ended: normally")
    except BaseException as error:
        print("block ended:", repr(error))


asyncio.run(main())
print("handled:", handled)
print("settled:", settled)
P
