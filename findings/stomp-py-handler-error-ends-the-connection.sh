#!/usr/bin/env bash
# Guess: stomp.py logs an error that on_message raises, and hands over the next message; or the broker is told (NACK).
# Seen: stomp.py closes its connection at the first error. It sends no NACK, no ERROR reaches the listener, the second
#   message, which had arrived already, is never handed over, and the client does not connect again.
# Matters: one message that a handler cannot read stops the consumer for all that follow, and the broker redelivers it
#   to the next consumer, whose connection ends as well. Catch everything in on_message.
# Versions: stomp.py 9.0.0, Python 3.11. The broker is a socket that answers by STOMP 1.2.
set -eu
. "$(dirname "$0")/lib.sh"
python_with stomp.py==9.0.0
python3 - 2>/dev/null <<'P' | expect "handled: ['bad']
disconnected: True
connected: False
frames of the client: ['CONNECT', 'SUBSCRIBE']"
import socket, threading, time
import stomp

server, frames, ended = socket.create_server(("127.0.0.1", 0)), [], threading.Event()


def serve():
    connection, _ = server.accept()
    with connection, connection.makefile("rb") as file:
        while frame := b"".join(iter(lambda: file.read(1), b"\0")).strip():
            frames.append(frame.split(b"\n")[0].decode().replace("STOMP", "CONNECT"))
            if frames[-1] == "CONNECT":
                connection.sendall(b"CONNECTED\nversion:1.2\n\n\0")
            if frames[-1] == "SUBSCRIBE":
                for number, text in enumerate((b"bad", b"good")):
                    connection.sendall(b"MESSAGE\nsubscription:1\nack:%d\nmessage-id:%d\ndestination:q\n\n%s\0" % (number, number, text))
    ended.set()


class Listener(stomp.ConnectionListener):
    handled, disconnected = [], False

    def on_message(self, frame):
        self.handled.append(frame.body)
        int(frame.body)

    def on_disconnected(self):
        Listener.disconnected = True


threading.Thread(target=serve, daemon=True).start()
client = stomp.Connection12([server.getsockname()])
client.set_listener("", Listener())
client.connect(wait=True)
client.subscribe("q", "1", ack="client-individual")
ended.wait(10)
time.sleep(1)
print("handled:", Listener.handled)
print("disconnected:", Listener.disconnected)
print("connected:", client.is_connected())
print("frames of the client:", frames)
P
