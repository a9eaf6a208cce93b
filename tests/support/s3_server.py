"""S3 in memory, by moto, in a process of its own: ``python -m tests.support.s3_server [plain]`` prints its port.

With ``plain`` it ignores the conditions of a request, as stores without conditional writes do.
"""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

__all__ = ["CREDENTIALS", "S3Server", "s3_server"]

CREDENTIALS = "env:JMSJCA_TEST_S3"
SECRET = "5ecret/of+the-bucket"  # noqa: S105  # of nothing
os.environ["JMSJCA_TEST_S3"] = f"AKIATEST:{SECRET}"


class S3Server:
    """A server, and its buckets.

    Attributes:
        endpoint: Its URL.
    """

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"

    def new_bucket(self) -> str:
        """Return the URL of a new bucket, and of a prefix in it."""
        name = f"bucket-{uuid4().hex[:12]}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")  # noqa: S310  # our own
        with urllib.request.urlopen(request) as response:  # noqa: S310
            assert response.status == 200
        return f"s3://{name}/staged"


@contextmanager
def s3_server(*arguments: str) -> Generator[S3Server]:
    """Start a server, and end it. Tests that need one are skipped where the libraries for it are missing."""
    for library in ("moto", "obstore"):
        pytest.importorskip(library)
    command = [sys.executable, "-m", "tests.support.s3_server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield S3Server(int(process.stdout.readline()))
        finally:
            process.kill()


def without_conditions(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def plain(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        return app(environ, start)

    return plain


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    app: Any = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, without_conditions(app) if "plain" in sys.argv else app, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
