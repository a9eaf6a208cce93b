"""What must be true of the account of a run."""

from pathlib import Path


def assert_balanced(done, account, sent):
    assert done.returncode == 0, done.stdout + done.stderr
    assert account["sent"] == sent
    assert account["lost"] == account["duplicated"] == account["unexpected"] == account["wrongly_dead_lettered"] == 0
    assert account["processed"] + account["dead_lettered"] == sent
    assert account["heard"] == account["processed"]
    assert all(rate > 0 for rate in account["per_second"].values())
    assert Path(account["picture"]).read_bytes().startswith(b"\x89PNG")


def assert_crashed(account):
    assert account["crash"]["committed_batches"] >= 1
    assert account["crash"]["unsettled_messages"] >= 1
