#!/usr/bin/env bash
# Guess: code that stages messages in one obstore store runs on the others: a missing object is obstore's NotFoundError
#   everywhere, and what put() returns can be handed back as the condition of the next put().
# Seen: a missing object is the builtin FileNotFoundError, never obstore's own class, for get() in both stores; delete()
#   of it succeeds in memory and raises in a folder. The result of put() is refused as a condition with TypeError,
#   because its version is None; without that key the memory store takes it, the folder raises NotImplementedError.
# Matters: clean-up and compare-and-set that pass their tests in memory fail in a folder, and "except NotFoundError"
#   catches nothing.
# Versions: obstore 0.12.1, Python 3.11.
set -eu
. "$(dirname "$0")/lib.sh"
python_with obstore==0.12.1
python3 - <<'P' | expect "MemoryStore get: builtins.FileNotFoundError
MemoryStore delete: succeeds
MemoryStore put if the result of put still holds: builtins.TypeError
MemoryStore put if its e_tag still holds: succeeds
LocalStore get: builtins.FileNotFoundError
LocalStore delete: builtins.FileNotFoundError
LocalStore put if the result of put still holds: builtins.TypeError
LocalStore put if its e_tag still holds: builtins.NotImplementedError
obstore has a NotFoundError: True"
import obstore
from obstore.store import LocalStore, MemoryStore


def attempt(name, store, method, *arguments, **options):
    try:
        method(store, *arguments, **options)
        result = "succeeds"
    except Exception as error:
        result = f"{type(error).__module__}.{type(error).__name__}"
    print(f"{type(store).__name__} {name}: {result}")


for store in (MemoryStore(), LocalStore("store", mkdir=True)):
    attempt("get", store, obstore.get, "missing")
    attempt("delete", store, obstore.delete, "missing")
    result = obstore.put(store, "batch", b"1")
    attempt("put if the result of put still holds", store, obstore.put, "batch", b"2", mode=result)
    attempt("put if its e_tag still holds", store, obstore.put, "batch", b"2", mode={"e_tag": result["e_tag"]})
print("obstore has a NotFoundError:", hasattr(obstore.exceptions, "NotFoundError"))
P
