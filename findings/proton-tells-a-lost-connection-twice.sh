#!/usr/bin/env bash
# Guess: when the TCP connection is lost, the Container calls on_transport_error with the reason and then on_disconnected
#   once, so a handler reads the reason first and counts one loss.
# Seen: on_disconnected comes before on_transport_error, and a second time at the end. Neither on_connection_closed nor
#   on_link_closed comes. The reason is called a framing error.
# Matters: a handler that starts its recovery in on_disconnected starts it twice, the first time without the reason; one
#   that waits for on_connection_closed waits for ever.
# Versions: python-qpid-proton 0.40.0 at both ends, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with python-qpid-proton==0.40.0
read -r port < <(free_ports 1)
python3 - "$port" <<'P' | expect "on_disconnected: 2 calls, the first before on_transport_error
on_transport_error: 1 call, amqp:connection:framing-error
on_connection_closed: 0 calls
on_link_closed: 0 calls"
import socket, sys, threading, time
from proton.handlers import MessagingHandler
from proton.reactor import Container

relay, ends, events, conditions = socket.create_server(("127.0.0.1", 0)), [], [], []


class Peer(MessagingHandler):
    def on_start(self, event):
        event.container.listen(f"127.0.0.1:{sys.argv[1]}")


class Client(MessagingHandler):
    def on_start(self, event):
        host, port = relay.getsockname()
        connection = event.container.connect(f"amqp://{host}:{port}", reconnect=False, allowed_mechs="ANONYMOUS")
        event.container.create_receiver(connection, "q")

    def on_link_opened(self, event):
        ends[0].shutdown(socket.SHUT_RDWR)  # the network, not the peer, ends the connection

    def on_transport_error(self, event):
        events.append("on_transport_error")
        conditions.append(event.transport.condition.name)


for name in ("on_disconnected", "on_connection_closed", "on_link_closed"):
    setattr(Client, name, lambda _, event, name=name: events.append(name))


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass


def serve():
    ends.append(relay.accept()[0])
    ends.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    for pair in (ends, ends[::-1]):
        threading.Thread(target=copy, args=pair, daemon=True).start()


threading.Thread(target=Container(Peer()).run, daemon=True).start()
time.sleep(3)
threading.Thread(target=serve, daemon=True).start()
Container(Client()).run()
first = "before" if events.index("on_disconnected") < events.index("on_transport_error") else "after"
print(f"on_disconnected: {events.count('on_disconnected')} calls, the first {first} on_transport_error")
print(f"on_transport_error: {len(conditions)} call, {conditions[0]}")
for name in ("on_connection_closed", "on_link_closed"):
    print(f"{name}: {events.count(name)} calls")
P
