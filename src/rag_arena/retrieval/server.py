"""A Qdrant server: a client that is patient, and its errors as one line."""

import importlib.metadata
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.common.version_check import is_compatible
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from rag_arena.errors import ArenaError, EndpointError
from rag_arena.llm.keys import blotted, key_from
from rag_arena.params import Store

_DEADLINE_S = 60
_PAUSES_S = (0.2, 1.0, 4.0)  # before each further try
_PASSING = (408, 429, 500, 502, 503, 504)


def connect(params: Store, once_within_s: float | None = None) -> QdrantClient:
    """A client of the configured server, once that has answered; a version far from the client's is told on stderr.

    Args:
        params: where the server is.
        once_within_s: ask it once and wait so long; if it is not given, be patient.

    Raises:
        EndpointError: nobody answers, the key is missing or refused, or it is no Qdrant.
    """
    key = key_from(params.api_key_env, params.url, ", or store.api_key_env to '' for none")
    deadline_s = int(once_within_s or _DEADLINE_S)
    transport = httpx.HTTPTransport if once_within_s else _PatientTransport
    client = QdrantClient(
        params.url,
        headers={"api-key": key} if key else {},
        timeout=deadline_s,
        transport=transport(verify=params.url.startswith("https:")),  # reading certificates takes time
        check_compatibility=False,  # its warning comes from a thread and fills three lines; ours is below
    )
    with told(params.url, deadline_s):
        found = client.info().version
        client.get_collections()  # needs the key, as the version does not
    known = importlib.metadata.version("qdrant-client")
    if not is_compatible(known, found):
        sys.stderr.write(f"note: {params.url}: Qdrant {found} is over a minor version away from qdrant-client {known}\n")
    return client


@contextmanager
def told(where: str, deadline_s: int = _DEADLINE_S) -> Iterator[None]:
    """Whatever the client raises, as one line that begins with `where` and says what to do."""
    try:
        yield
    except UnexpectedResponse as error:
        if error.status_code in (401, 403):
            raise EndpointError(f"{where}: refuses the key ({error.status_code}); check store.api_key_env") from error
        said = f"{where}: {error.status_code} {' '.join(blotted(error.content.decode('utf-8', 'replace')).split())[:200]}"
        path = urlsplit(where).path.strip("/")
        mend = f"there is no Qdrant under /{path}, mend store.url" if path else "check store.url"
        raise EndpointError(f"{said}; {mend}") if error.status_code == 404 else ArenaError(said) from error
    except ResourceExhaustedResponse as error:
        raise ArenaError(f"{where}: {blotted(str(error))}; run fewer cells at once") from error
    except ResponseHandlingException as error:
        if isinstance(error.source, httpx.TimeoutException):
            raise ArenaError(f"{where}: no reply within {deadline_s} s; give the server more memory or processors") from error
        if isinstance(error.source, httpx.TransportError):
            said = blotted(str(error.source))
            raise EndpointError(f"{where}: nobody answers ({said}); start Qdrant or mend store.url") from error
        raise EndpointError(f"{where}: answers, but not as Qdrant does; mend store.url") from error
    except ValueError as error:
        raise EndpointError(f"{where}: answers, but not as Qdrant does; mend store.url") from error


class _PatientTransport(httpx.HTTPTransport):
    """Tries again what may pass. Every request of ours may be repeated: the same points are stored once."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for pause in _PAUSES_S:
            try:
                response = super().handle_request(request)
            except httpx.TransportError:
                time.sleep(pause)
                continue
            if response.status_code not in _PASSING:
                return response
            response.close()
            time.sleep(pause)
        return super().handle_request(request)
