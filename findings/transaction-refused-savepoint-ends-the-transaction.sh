#!/usr/bin/env bash
# Guess: a savepoint that a data manager refuses (it has no savepoints) raises TypeError, and the transaction goes on
#   without it: the caller can catch the error and commit.
# Seen: the error is raised, but the whole transaction has failed: every data manager that had joined is aborted at once,
#   and commit() raises TransactionFailedError.
# Matters: a library that takes a savepoint "if it can" rolls back the receipt of a message and the rows of the database
#   as soon as one of the resources has none.
# Versions: transaction 5.1, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with transaction==5.1
python3 - <<'P' | expect "savepoint: TypeError
calls: ['queue abort', 'queue tpc_abort', 'table abort', 'table tpc_abort']
status: Commit failed
commit: TransactionFailedError"
import transaction

calls = []


class Manager:
    transaction_manager = transaction.manager

    def __init__(self, name):
        self.name = name

    def sortKey(self):
        return self.name

    def __getattr__(self, name):
        if name not in ("abort", "tpc_begin", "commit", "tpc_vote", "tpc_finish", "tpc_abort"):
            raise AttributeError(name)
        return lambda _: calls.append(f"{self.name} {name}")


class WithSavepoints(Manager):
    def savepoint(self):
        class Savepoint:
            def rollback(self):
                calls.append("rollback")

        return Savepoint()


current = transaction.begin()
current.join(WithSavepoints("table"))
current.join(Manager("queue"))
try:
    transaction.savepoint()
except Exception as error:
    print("savepoint:", type(error).__name__)
print("calls:", sorted(calls))
print("status:", current.status)
try:
    transaction.commit()
except Exception as error:
    print("commit:", type(error).__name__)
P
