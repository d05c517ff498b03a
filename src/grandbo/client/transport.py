"""
One HTTP conversation with a service: the token, retries that are safe, and errors that are the library's.

What is retried either only reads or carries an Idempotency-Key, so that a retry is answered as the first was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx2
import stamina

from grandbo import errors
from grandbo.errors import GrandboError

_BUSY = (429, 503)
_LONGEST_WAIT = 30.0
_ATTEMPTS = 4


class ApiError(GrandboError):
    """The service answered with an error that this client does not know; its code is in `details`."""

    code = "api_error"


class _Busy(Exception):
    """The service asks to come again later."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(response.status_code)
        self.response = response
        stated = response.headers.get("retry-after", "")
        self.wait = min(float(stated), _LONGEST_WAIT) if stated.isdigit() else None


class Transport:
    """Requests to one service, with one credential. Close it, or use it in a `with`."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        timeout: float = 30.0,
        attempts: int = _ATTEMPTS,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._attempts = attempts
        self._http = httpx2.Client(
            base_url=url.rstrip("/"),
            headers={"Accept": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {}),
            timeout=timeout,
            transport=transport,
            # A redirect would carry the token to wherever it points.
            follow_redirects=False,
        )

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
    ) -> Any:
        """
        Send a request; give the answer's JSON.

        Args:
            content: JSON as bytes, in the place of `body`.
            params: None is left out, a list is repeated.
            repeatable: whether sending it again is harmless.

        Raises:
            GrandboError: the error that the service names by its code; `ApiError` for one that is not known here;
                `Unavailable` where the service cannot be reached.
        """
        content = content if body is None else json.dumps(body).encode()
        sent = {**({"Content-Type": "application/json"} if content else {}), **(headers or {})}
        query = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            for attempt in stamina.retry_context(
                on=_should_retry, attempts=self._attempts if repeatable else 1, timeout=None, wait_max=_LONGEST_WAIT
            ):
                with attempt:
                    response = self._http.request(method, path, content=content, params=query, headers=sent)
                    if response.status_code in _BUSY:
                        raise _Busy(response)
        except _Busy as busy:
            response = busy.response
        except httpx2.TransportError as error:
            raise errors.Unavailable(f"The service cannot be reached ({type(error).__name__}); try again.") from error
        if response.is_success:
            return response.json()
        raise _error_of(response)


def _should_retry(error: Exception) -> bool | float:
    if isinstance(error, _Busy):
        return error.wait if error.wait is not None else True
    return isinstance(error, httpx2.TransportError)


def _known_errors(kind: type[GrandboError] = GrandboError) -> dict[str, type[GrandboError]]:
    found = {kind.code: kind}
    for below in kind.__subclasses__():
        found |= _known_errors(below)
    return found


def _error_of(response: httpx2.Response) -> GrandboError:
    try:
        problem = response.json()
        code, detail = problem["code"], problem["detail"]
    except (ValueError, KeyError, TypeError):
        return ApiError(f"The service answered with status {response.status_code}.", status=response.status_code)
    told = ("type", "title", "status", "code", "detail")
    details = {name: value for name, value in problem.items() if name not in told}
    kind = _known_errors().get(code)
    return kind(detail, **details) if kind is not None else ApiError(detail, code_given=code, **details)
