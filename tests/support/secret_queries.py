"""Reads and writes with a password that is given in each way, and keeps what Spark shows and writes meanwhile.

``python -m secret_queries FOLDER URL``: the password is in the file ``FOLDER/../secret`` and the variable ``SECRET``.
``python -m secret_queries FOLDER URL REMOTE PAGES WAY…`` does so as a client of Spark Connect, with some of the ways;
``PAGES`` is the address of the server's pages.
"""

import html
import json
import os
import re
import sys
import traceback
import urllib.request
from contextlib import redirect_stdout
from pathlib import Path

from crashing_query import run_to_end
from guarded_artemis import USER
from pyspark import TaskContext
from pyspark.sql import SparkSession
from spark_session import spark_session

VISIBLE = "this-is-to-be-found"
CALLS = "calls"
ALLOWED = "?allow_insecure_login=true"
FIGURES = ["jobs", "stages", "executors", "environment", "sql?details=true&planDescription=true"]
PAGES = ["jobs/", "stages/", "environment/", "SQL/", "StreamingQuery/", "executors/"]


def login():
    """Return the login, and record whether a task has asked for it."""
    with Path(os.environ["SECRET_CALLS"]).open("a") as file:
        file.write(f"{'task' if TaskContext.get() else 'driver'}\n")
    return USER, os.environ["SECRET"]


def ways(url, secret, file):
    """Return the options for each way to give a password."""
    own = {"url": url + ALLOWED}
    return {
        "url": {"url": f"{url.replace('://', f'://{USER}:{secret}@')}{ALLOWED}"},
        "password": own | {"userName": USER, "password": secret},
        "env": own | {"userName": USER, "credentials": "env:SECRET"},
        "file": own | {"userName": USER, "credentials": f"file:{file}"},
        "call": own | {"credentials": f"call:{__name__.replace('__main__', 'secret_queries')}:login"},
    }


class Queries:
    """The queries with one way to give the password."""

    def __init__(self, spark, folder, options):
        self._spark = spark
        self._folder = folder
        self._options = options
        folder.mkdir()

    def run(self):
        with (self._folder / "explained").open("w") as file, redirect_stdout(file):
            self._write("orders")
            self._read("orders")
            self._stream("orders", "results")
        for number, wrong in enumerate([{"password": "wr0ng"}, {"credentials": "env:NOT_SET"}, {"partitons": "1"}]):
            self._fail(number, wrong)

    def _frame(self, name, **more):
        options = self._options | more
        return self._spark.read.format("jms").options(**options, destination=f"{self._folder.name}.{name}").load()

    def _write(self, name):
        table = self._spark.range(3).selectExpr("cast(id as string) AS text")
        table.write.format("jms").options(**self._options).mode("append").save(f"{self._folder.name}.{name}")

    def _read(self, name):
        frame = self._frame(name)
        frame.explain(mode="extended")
        frame.explain(mode="formatted")
        print(frame, frame.count())

    def _stream(self, name, target):
        stream = self._spark.readStream.format("jms").options(**self._options)
        stream = stream.option("stagingLocation", str(self._folder / "staging")).load(f"{self._folder.name}.{name}")
        sink = stream.select("text", "message_id").writeStream.format("jms").options(**self._options)
        sink = sink.option("destination", f"{self._folder.name}.{target}").queryName(self._folder.name)
        sink = sink.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(availableNow=True)
        query = run_to_end(sink.start)
        query.explain(extended=True)
        print(query.lastProgress, query.recentProgress, query.status)

    def _fail(self, number, wrong):
        options = {name: value for name, value in self._options.items() if name not in ("password", "credentials")}
        try:
            self._spark.read.format("jms").options(**(self._options | options | wrong)).load("orders").count()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is shown
            text = "".join(traceback.format_exception(error))
            (self._folder / f"error-{number}").write_text(f"{text}\n{error!r}\n{error.__dict__}")


def keep_pages(root, folder, *more):
    """Keep what the running application shows.

    Args:
        root: The address of its pages.
        folder: Where they are kept.
        *more: Further pages.
    """
    [application] = load(f"{root}/api/v1/applications")
    number = application["id"]
    executions = load(f"{root}/api/v1/applications/{number}/sql?length=1000")
    addresses = [f"api/v1/applications/{number}/{name}" for name in FIGURES]
    addresses += [*PAGES, *more, *(f"SQL/execution/?id={execution['id']}" for execution in executions)]
    folder.mkdir()
    for place, address in enumerate(addresses):
        with urllib.request.urlopen(f"{root}/{address}", timeout=60) as page:  # noqa: S310  # Spark's own
            (folder / f"{place:02}").write_bytes(f"{address}\n".encode() + page.read())


def load(address):
    """Return what the application says in JSON."""
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310  # Spark's own
        return json.load(answer)


def event_log(folder):
    """Return the settings of a Spark that shows pages, and writes its events into a folder."""
    (folder / "events").mkdir()
    return {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.visible": VISIBLE,
    }


def main(folder, url):
    with spark_session(folder, "local[2]", event_log(folder)) as spark:
        spark.sparkContext.setLogLevel("INFO")
        run(spark, folder, url)
        keep_pages(spark.sparkContext.uiWebUrl, folder / "pages")


def main_of_client(folder, url, remote, root, *names):
    run(SparkSession.builder.remote(f"{remote}/;user_id={USER}").getOrCreate(), folder, url, *names)
    with urllib.request.urlopen(f"{root}/connect/", timeout=60) as page:  # noqa: S310  # Spark's own
        [session] = set(re.findall('href="/(connect/session/[^"]+)"', page.read().decode()))
    keep_pages(root, folder / "pages", "connect/", html.unescape(session))


def run(spark, folder, url, *names):
    """Run the queries with all ways to give the password, or with some."""
    for name, options in ways(url, os.environ["SECRET"], folder.parent / "secret").items():
        if not names or name in names:
            Queries(spark, folder / name, options).run()


if __name__ == "__main__":
    (main_of_client if sys.argv[3:] else main)(Path(sys.argv[1]), *sys.argv[2:])
