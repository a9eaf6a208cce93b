#!/usr/bin/env bash
# Guess: the outcome "rejected" says that a message is invalid (AMQP 1.0 section 3.4.3), so a broker never delivers it
#   again: it dead-letters it, or discards it where no dead letter queue is set.
# Seen: Broker-J, with no alternate binding on the queue, puts the message back and delivers it to the same receiver at
#   once, with a delivery count that grows by one. After four rejections the message still comes.
# Matters: a consumer that rejects poison messages and is moved to Broker-J from a broker that dead-letters turns in a
#   circle with the first bad message. Give each queue an alternate binding and a maximum of delivery attempts.
# Versions: Qpid Broker-J 10.1.0, python-qpid-proton 0.40.0.
set -eu
. "$(dirname "$0")/lib.sh"
python_with python-qpid-proton==0.40.0
brokerj
python3 - "$amqp" <<'P' | expect "delivery counts: [0, 1, 2, 3, 4]"
import sys
from proton import Message
from proton.utils import BlockingConnection

connection = BlockingConnection(f"amqp://127.0.0.1:{sys.argv[1]}", timeout=60, allowed_mechs="ANONYMOUS")
connection.create_sender("orders").send(Message(body="order"))
receiver, counts = connection.create_receiver("orders", credit=1), []
for _ in range(5):
    counts.append(receiver.receive(timeout=30).delivery_count)
    receiver.reject()
print("delivery counts:", counts)
connection.close()
P
