#!/usr/bin/env bash
# Guess: the message-id of STOMP names the message: a redelivery, to this or another consumer, carries the same id.
# Seen: on Artemis the id is "consumer,number", and the first part is new for each subscription. The same message has
#   another message-id at each redelivery after a reconnection, while a header of the producer stays as it is.
# Matters: whatever is keyed on message-id (duplicate filters, an inbox, counts of attempts) never recognises a
#   redelivered message. Let producers set a key of their own.
# Versions: Artemis 2.56.0, raw STOMP 1.2 frames.
set -eu
. "$(dirname "$0")/lib.sh"
artemis
python3 - "$stomp" <<'P' | expect "delivery 1: key 5, redelivered false
delivery 2: key 5, redelivered true
delivery 3: key 5, redelivered true
different message ids: 3, different second parts: 1"
import sys
from frames import Stomp

Stomp(int(sys.argv[1])).ask("SEND", "order", destination="q", destination_type="ANYCAST", key=5)
ids = []
for number in (1, 2, 3):
    consumer = Stomp(int(sys.argv[1]))
    consumer.send("SUBSCRIBE", id=1, destination="q", subscription_type="ANYCAST", ack="client-individual")
    headers = consumer.read(20)[1]
    ids.append(headers["message-id"])
    print(f"delivery {number}: key {headers['key']}, redelivered {headers['redelivered']}")
    consumer.ask("DISCONNECT")  # without an ACK
    consumer.socket.close()
parts = {each.split(r"\c")[-1].split(",")[-1] for each in ids}
print(f"different message ids: {len(set(ids))}, different second parts: {len(parts)}")
P
