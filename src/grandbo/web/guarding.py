"""What keeps other sites out: the origin of what is sent, and the headers that every page carries."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from grandbo.errors import Forbidden

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: a form would then be sent with the origin `null`, which tells ours from nobody's.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_OWN = ("same-origin", "none")


def check_origin(request: Request) -> None:
    """
    Refuse what another site's page sends with this one's cookies.

    A browser says where a request comes from in Sec-Fetch-Site; one that does not, says it in Origin. What says neither
    is refused: no browser, and whoever writes scripts has `/v1`.
    """
    site = request.headers.getlist("sec-fetch-site")
    origin = request.headers.getlist("origin")
    if len(site) > 1 or len(origin) > 1 or not (site or origin):
        raise _foreign()
    if site and site[0] not in _OWN:
        raise _foreign()
    if origin and urlsplit(origin[0]).netloc.lower() != request.headers.get("host", "").lower():
        raise _foreign()


def _foreign() -> Forbidden:
    return Forbidden("This was not sent from a page of this service; open the page here and send it again.")
