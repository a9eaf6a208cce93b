#!/bin/sh
# What Apache's interop suite runs; its folder may be linked into the suite's folder shims.
root=$(dirname "$(readlink -f "$0")")/../../../..
python=$root/.venv/bin/python
[ -x "$python" ] || python=python3
cd "$root" || exit 1
PYTHONPATH=$PWD:$PWD/tests/support exec "$python" -m tests.interop.shim qpid-jms "$@"
