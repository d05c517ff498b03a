"""`/livez`, `/readyz`, `/metrics`: what an operator's tools ask."""

from __future__ import annotations

import anyio
import anyio.to_thread
from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from grandbo.http.errors import NotReady
from grandbo.http.health import Readiness
from grandbo.http.metrics import Metrics
from grandbo.http.openapi import answers, problems
from grandbo.http.schemas import ReadyDocument


def process_routes(readiness: Readiness, metrics: Metrics) -> APIRouter:
    """The routes of this process."""
    routes = APIRouter()
    # Their own threads: requests that wait for a database must not make the process look dead.
    probes, scrapes = anyio.CapacityLimiter(4), anyio.CapacityLimiter(2)

    @routes.get(
        "/livez",
        operation_id="livez",
        response_class=JSONResponse,
        responses={200: answers(ReadyDocument, "The process runs."), **problems()},
    )
    async def livez() -> Response:
        """Whether the process runs."""
        return JSONResponse({"status": "live"})

    async def readyz() -> Response:
        """Whether requests should be sent here: database, schema, pool, worker."""
        reasons = await anyio.to_thread.run_sync(readiness.reasons, limiter=probes)
        if reasons:
            raise NotReady(reasons=reasons)
        return JSONResponse({"status": "ready"})

    for path in ("/readyz", "/healthz"):
        routes.get(
            path,
            operation_id=path.strip("/"),
            response_class=JSONResponse,
            responses={200: answers(ReadyDocument, "Ready."), **problems(503)},
        )(readyz)

    @routes.get(
        "/metrics",
        operation_id="metrics",
        response_class=Response,
        responses={
            200: {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **problems(421),
        },
    )
    async def read_metrics() -> Response:
        """Counts and times, without tenants and topics."""
        text = await anyio.to_thread.run_sync(metrics.exposition, limiter=scrapes)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return routes
