#!/usr/bin/env bash
# Guess: headers of STOMP are text, so a selector that compares one with a number matches nothing on Artemis: neither
#   n = 7 nor n <> 7 selects a message with n:7 (JMS: text and number do not compare, the result is unknown).
# Seen: n = 7 selects nothing, as expected, but n <> 7 selects the message whose n is 7. Compared with text both are
#   right. With the prefix convert_string_expressions: of the selector the comparison is one of numbers.
# Matters: "everything but region 7" over STOMP receives region 7 as well, and takes it from the consumer that it is for.
# Versions: Artemis 2.56.0, raw STOMP 1.2 frames.
set -eu
. "$(dirname "$0")/lib.sh"
artemis
python3 - "$stomp" <<'P' | expect "n = 7: nothing
n <> 7: n is 7
n = '7': n is 7
n <> '7': nothing
convert_string_expressions:n <> 7: nothing"
import sys
from frames import Stomp

producer = Stomp(int(sys.argv[1]))
for number, selector in enumerate(("n = 7", "n <> 7", "n = '7'", "n <> '7'", r"convert_string_expressions\c" + "n <> 7")):
    queue = {"destination": f"q{number}"}
    producer.ask("SEND", "order", n=7, destination_type="ANYCAST", **queue)
    consumer = Stomp(int(sys.argv[1]))
    consumer.ask("SUBSCRIBE", id=1, selector=selector, subscription_type="ANYCAST", **queue)
    got = consumer.read(5)
    print(selector.replace(r"\c", ":") + ":", f"n is {got[1]['n']}" if got else "nothing")
P
