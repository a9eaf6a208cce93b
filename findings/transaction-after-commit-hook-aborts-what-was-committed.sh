#!/usr/bin/env bash
# Guess: after a good commit a data manager hears tpc_finish() and nothing more; an after-commit hook is told the result
#   and changes nothing.
# Seen: as soon as one after-commit hook is registered, by anybody, each data manager gets abort() after its
#   tpc_finish(). Without a hook it does not.
# Matters: a data manager whose abort() releases its messages, closes a connection or counts a failure does so for a
#   transaction that has been committed, only in applications where some other library registers such a hook.
# Versions: transaction 5.1, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with transaction==5.1
python3 - <<'P' | expect "without a hook: ['tpc_begin', 'commit', 'tpc_vote', 'tpc_finish']
with a hook: ['tpc_begin', 'commit', 'tpc_vote', 'tpc_finish', 'hook True', 'abort']"
import transaction


class Manager:
    transaction_manager = transaction.manager

    def __init__(self):
        self.calls = []

    def sortKey(self):
        return "queue"

    def __getattr__(self, name):
        if name not in ("abort", "tpc_begin", "commit", "tpc_vote", "tpc_finish", "tpc_abort"):
            raise AttributeError(name)
        return lambda _: self.calls.append(name)


for hook in (False, True):
    manager = Manager()
    current = transaction.begin()
    current.join(manager)
    if hook:
        current.addAfterCommitHook(lambda success: manager.calls.append(f"hook {success}"))
    transaction.commit()
    print("with a hook:" if hook else "without a hook:", manager.calls)
P
