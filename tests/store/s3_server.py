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
def serving_s3(bucket: str, requested: Callable[[str], None] = lambda request: None) -> Iterator[int]:
    """Yield the port of a server with one bucket; meanwhile its credentials are in the environment.

    Args:
        bucket: name of the bucket.
        requested: called with method and path of every request.
    """
    moto = pytest.importorskip("moto.server", reason="no S3 server: pip install 'moto[server]'")
    from werkzeug.serving import make_server

    answer = moto.DomainDispatcherApplication(moto.create_backend_app)

    def counted(environment: dict[str, Any], start: Callable[..., Any]) -> Any:
        requested(f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}")
        return answer(environment, start)

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    listening = make_server("127.0.0.1", 0, counted, threaded=True)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as context:
        for name, value in CREDENTIALS.items():
            context.setenv(name, value)
        options = {"endpoint_override": f"127.0.0.1:{listening.server_port}", "scheme": "http", "region": "us-east-1"}
        fs.S3FileSystem(**options, allow_bucket_creation=True).create_dir(bucket)
        yield listening.server_port
    listening.shutdown()
    thread.join()
    listening.server_close()


CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
}
