"""Keeps the logs of the brokers for whoever looks into a failed test."""

import shutil


def keep_log(broker, name, folder):
    """Copy a broker's log to ``<folder>/<name>.log`` and return the copy."""
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    return shutil.copyfile(broker.log, folder / f"{name}.log")
