"""A web application that sends a message for each request, and clients that make requests from many threads."""

import http.client
import socketserver
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from jmsjca import ResourceAdapter

__all__ = ["post_from_threads", "serving"]

PATIENCE = 60


class Threading(socketserver.ThreadingMixIn, WSGIServer):
    """A server with a thread for each request."""

    daemon_threads = True
    request_queue_size = 128


class Silent(WSGIRequestHandler):
    """Logs nothing."""

    def log_message(self, *_args: object) -> None:
        """Do nothing."""


@contextmanager
def serving(adapter: ResourceAdapter, queue: str) -> Iterator[int]:
    """Serve the application, and yield its port."""

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        message = adapter.send(queue, body.decode(), properties={"path": environ["PATH_INFO"]})
        start_response("202 Accepted", [("Content-Type", "text/plain")])
        return [str(message.message_id).encode()]

    with make_server("127.0.0.1", 0, application, Threading, Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def post_from_threads(port: int, threads: int, requests: int) -> dict[str, str]:
    """Make requests from many threads at once; return the message ids by the bodies that were sent."""

    def post(number: int) -> tuple[str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("POST", "/orders", f"order {number}")
            response = connection.getresponse()
            assert response.status == 202
            return f"order {number}", response.read().decode()
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return dict(pool.map(post, range(requests)))
