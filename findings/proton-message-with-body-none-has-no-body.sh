#!/usr/bin/env bash
# Guess: Message(body=None) is sent with a null as its body (an amqp-value section with null), since AMQP 1.0 section 3.2
#   demands one body: data, sequence or value. The same object with 0, "" or [] has such a section.
# Seen: the encoded message ends after its properties: it has no body section at all. Decoded by proton it is
#   body=None again, so two proton programs never notice. An explicit null cannot be sent in this way.
# Matters: consumers that insist on a body refuse the message or see another type than for all other values, and a
#   broker that converts has to guess; "no value" and "null" are one for proton and two for the others.
# Versions: python-qpid-proton 0.40.0, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with python-qpid-proton==0.40.0
python3 - <<'P' | expect "None: header, properties
0: header, properties, amqp-value
'': header, properties, amqp-value
[]: header, properties, amqp-value
None, inferred: header, properties"
from proton import Data, Message

NAMES = {0x70: "header", 0x73: "properties", 0x74: "application-properties", 0x75: "data", 0x76: "sequence", 0x77: "amqp-value"}


def sections(encoded):
    found = []
    while encoded:
        data = Data()
        encoded = encoded[data.decode(encoded):]
        data.rewind()
        data.next()
        found.append(NAMES[data.get_py_described().descriptor])
    return ", ".join(found)


for body in (None, 0, "", []):
    print(f"{body!r}: {sections(Message(body=body).encode())}")
print("None, inferred:", sections(Message(body=None, inferred=True).encode()))
P
