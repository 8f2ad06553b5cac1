"""An S3 server on the loopback interface, in a thread of the calling process."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyarrow import fs


@contextlib.contextmanager
def serving_s3(
    bucket: str,
    requested: Callable[[str], None] = lambda request: None,
    fault: Callable[[], int] = lambda: 0,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Iterator[int]:
    """Yield the port of a server with one bucket; meanwhile its credentials are in the environment.

    Args:
        bucket: name of the bucket.
        requested: called with method and path of every request.
        fault: called for every request once the bucket exists: 503 refuses it, 500 executes it but answers with an
            error, and 0 lets it pass.
        host: the address to listen on.
        port: the port to listen on; 0 for any that is free.
    """
    moto = pytest.importorskip("moto.server", reason="no S3 server: pip install 'moto[s3]' flask-cors")
    from werkzeug.serving import make_server

    answer = moto.DomainDispatcherApplication(moto.create_backend_app)

    def counted(environment: dict[str, Any], start: Callable[..., Any]) -> Any:
        requested(f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}")
        status = fault() if ready else 0
        if status == 500:
            b"".join(answer(environment, lambda *_: None))
        if status:
            start(f"{status} Fault", [("Content-Type", "application/xml")])
            return [b"<Error><Code>InternalError</Code></Error>" if status == 500 else _SLOW_DOWN]
        return answer(environment, start)

    ready = False
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    listening = make_server(host, port, counted, threaded=True)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as context:
        for name, value in CREDENTIALS.items():
            context.setenv(name, value)
        options = {"endpoint_override": f"{host}:{listening.server_port}", "scheme": "http", "region": "us-east-1"}
        fs.S3FileSystem(**options, allow_bucket_creation=True).create_dir(bucket)
        ready = True
        yield listening.server_port
    listening.shutdown()
    thread.join()
    listening.server_close()


_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
