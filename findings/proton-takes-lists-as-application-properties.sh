#!/usr/bin/env bash
# Guess: AMQP 1.0 (section 3.2.5) restricts application properties to simple types, so proton refuses a list or a map as
#   a value, as Qpid JMS does.
# Seen: proton encodes lists, tuples and maps as values and decodes them again, a tuple as a list, with no error. Only
#   a number that fits no AMQP type is refused.
# Matters: two Python programs can use such a property for years; the first consumer of another kind, or a broker that
#   converts the message, gets one that the standard does not allow.
# Versions: python-qpid-proton 0.40.0, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with python-qpid-proton==0.40.0
python3 - <<'P' | expect "[1, 'a'] -> [1, 'a']
(1, 2) -> [1, 2]
{'a': 1} -> {'a': 1}
1180591620717411303424 -> OverflowError"
from proton import Message

for value in ([1, "a"], (1, 2), {"a": 1}, 2**70):
    try:
        received = Message()
        received.decode(Message(body="text", properties={"p": value}).encode())
        print(value, "->", received.properties["p"])
    except Exception as error:
        print(value, "->", type(error).__name__)
P
