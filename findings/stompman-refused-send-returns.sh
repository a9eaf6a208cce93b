#!/usr/bin/env bash
# Guess: a broker that refuses a SEND answers ERROR and closes the connection (STOMP 1.2), so stompman raises: from this
#   send(), from the next one, or at the latest when the "async with" block of the client ends.
# Seen: nothing raises. The ERROR frame is logged as a warning, the client connects again by itself, the next send() goes
#   over the new connection, and the block ends normally.
# Matters: a program without a callback for error frames and without a look at the log takes a refused message for sent.
# Versions: stompman 3.16.0, Python 3.11. The broker is a socket that answers by STOMP 1.2.
set -eu
. "$(dirname "$0")/lib.sh"
python_with stompman==3.16.0
python3 - 2>/dev/null <<'P' | expect "send to refused: returns
send to allowed: returns
block ended normally
the broker saw: ['CONNECT', 'SEND', 'CONNECT', 'SEND', 'DISCONNECT']"
import asyncio
import stompman

seen = []


async def serve(reader, writer):
    try:
        while frame := (await reader.readuntil(b"\0")).strip(b"\0\n").decode():
            command, *headers = frame.split("\n")
            seen.append(command.replace("STOMP", "CONNECT"))
            if seen[-1] == "CONNECT":
                writer.write(b"CONNECTED\nversion:1.2\nheart-beat:0,0\n\n\0")
            elif command == "SEND" and "destination:refused" in headers:
                writer.write(b"ERROR\nmessage:not allowed\n\n\0")
                await writer.drain()
                writer.close()
            elif command == "DISCONNECT":
                receipt = next(line for line in headers if line.startswith("receipt:"))[8:]
                writer.write(f"RECEIPT\nreceipt-id:{receipt}\n\n\0".encode())
    except asyncio.IncompleteReadError:
        pass


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with stompman.Client([stompman.ConnectionParameters(host, port, "a", "b")]) as client:
        for queue in ("refused", "allowed"):
            await client.send(b"order", queue)
            print(f"send to {queue}: returns")
            await asyncio.sleep(3)
    print("block ended normally")


asyncio.run(main())
print("the broker saw:", seen)
P
