"""The application: routes, under layers that hold for every route alike."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from starlette.routing import Route

import grandbo as package
from grandbo.http.admission import Admission
from grandbo.http.audit_routes import audit_routes
from grandbo.http.body import READ_SECONDS, BodyLimit
from grandbo.http.candidate_routes import candidate_routes
from grandbo.http.candidate_schemas import CANDIDATE_DOCUMENTS
from grandbo.http.care_routes import care_routes
from grandbo.http.care_schemas import CARE_DOCUMENTS
from grandbo.http.document_routes import UPLOAD_LIMIT_BYTES, document_routes
from grandbo.http.document_schemas import DOCUMENT_DOCUMENTS
from grandbo.http.edge import LOOPBACK_HOSTS, Edge
from grandbo.http.entry_routes import entry_routes
from grandbo.http.entry_schemas import ENTRY_DOCUMENTS
from grandbo.http.erasure_routes import ERASURE_DOCUMENTS, erasure_routes
from grandbo.http.health import Readiness
from grandbo.http.hook_routes import hook_routes, inbox_routes
from grandbo.http.hook_schemas import HOOK_DOCUMENTS
from grandbo.http.impact_routes import impact_routes
from grandbo.http.impact_schemas import IMPACT_DOCUMENTS
from grandbo.http.investigation_routes import investigation_routes
from grandbo.http.investigation_schemas import INVESTIGATION_DOCUMENTS
from grandbo.http.key_routes import KEY_DOCUMENTS, key_routes, tenant_routes
from grandbo.http.memory_routes import memory_routes
from grandbo.http.metrics import Metrics
from grandbo.http.openapi import install_document
from grandbo.http.people_routes import personal_routes, subject_routes
from grandbo.http.people_schemas import PEOPLE_DOCUMENTS
from grandbo.http.policy_routes import POLICY_DOCUMENTS, policy_routes
from grandbo.http.problems import install_handlers
from grandbo.http.process_routes import process_routes
from grandbo.http.recall_schemas import RECALL_DOCUMENTS
from grandbo.http.receipt_routes import receipt_routes
from grandbo.http.rendered_schemas import RENDERED_DOCUMENTS
from grandbo.http.resource import Resource
from grandbo.http.schemas import DOCUMENTS
from grandbo.http.stamp_routes import STAMP_DOCUMENTS, stamp_routes
from grandbo.http.subscription_routes import subscription_routes
from grandbo.http.subscription_schemas import SUBSCRIPTION_DOCUMENTS
from grandbo.http.tool_routes import tool_routes
from grandbo.library import Grandbo
from grandbo.mcp.over_http import PATH, Endpoint
from grandbo.web.app import Web
from grandbo.web.signing_in import Doors

FINDING_LIMIT_BYTES = 256 * 1024
RECALL_LIMIT_BYTES = 64 * 1024
DELIVERY_LIMIT_BYTES = 1024 * 1024

# Nothing about a request leaves the process unless someone decides so; the library would send messages and bodies.
_NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def build_app(
    grandbo: Grandbo,
    *,
    allowed_hosts: Sequence[str] = (),
    readiness: Readiness | None = None,
    body_seconds: float = READ_SECONDS,
    public_url: str | None = None,
) -> FastAPI:
    """
    Build the application over an open memory.

    Args:
        allowed_hosts: host names it answers under, besides the loopback ones and the configured host.
        readiness: what `/readyz` tells; the server passes its own, to end it first when the process stops.
        body_seconds: how long a body may take to arrive.
        public_url: the base URL that callers know it by, where `GRANDBO_PUBLIC_URL` does not say.
    """
    metrics = Metrics(grandbo)
    admission = Admission(grandbo.settings, metrics)
    resource = Resource.of(grandbo, PATH, public_url)
    endpoint = Endpoint(
        lambda connection, token: admission.admit(grandbo, connection, token),
        read_only=grandbo.settings.mcp_read_only,
        metadata_url=resource.metadata_url if resource else None,
    )
    doors = Doors(partial(admission.admit, grandbo), partial(admission.identify, grandbo), admission.attempt)
    web = Web(grandbo, doors)

    @contextlib.asynccontextmanager
    async def running(_app: FastAPI) -> AsyncIterator[None]:
        async with endpoint.run():
            yield
        await anyio.to_thread.run_sync(web.jobs.close)

    app = FastAPI(
        lifespan=running,
        title="Grandbo",
        summary="An organisation's memory of its incidents.",
        version=package.__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
    )
    app.state.admission = admission
    # Routes are tried in their order: those that agents wait for come first.
    app.router.routes.insert(0, Route(PATH, endpoint, methods=["POST"], include_in_schema=False))
    app.include_router(memory_routes(grandbo, metrics))
    app.include_router(entry_routes(grandbo))
    app.include_router(receipt_routes(grandbo))
    app.include_router(impact_routes(grandbo))
    readiness = readiness or Readiness(grandbo)
    app.include_router(audit_routes(grandbo, readiness))
    app.include_router(care_routes(grandbo))
    app.include_router(candidate_routes(grandbo))
    app.include_router(policy_routes(grandbo))
    app.include_router(stamp_routes(grandbo))
    app.include_router(erasure_routes(grandbo))
    app.include_router(subject_routes(grandbo))
    app.include_router(personal_routes(grandbo))
    app.include_router(tool_routes(grandbo))
    app.include_router(investigation_routes(grandbo))
    app.include_router(key_routes(grandbo))
    app.include_router(tenant_routes(grandbo))
    app.include_router(hook_routes(grandbo))
    app.include_router(inbox_routes(grandbo))
    app.include_router(subscription_routes(grandbo))
    app.include_router(document_routes(grandbo))
    if resource is not None:
        app.router.routes.extend(resource.routes())
    app.include_router(process_routes(readiness, metrics))
    app.router.routes.extend(web.routes())
    install_handlers(app, resource.metadata_url if resource else None)
    documents = (
        DOCUMENTS,
        RECALL_DOCUMENTS,
        RENDERED_DOCUMENTS,
        ENTRY_DOCUMENTS,
        IMPACT_DOCUMENTS,
        CANDIDATE_DOCUMENTS,
        POLICY_DOCUMENTS,
        STAMP_DOCUMENTS,
        ERASURE_DOCUMENTS,
        PEOPLE_DOCUMENTS,
        INVESTIGATION_DOCUMENTS,
        CARE_DOCUMENTS,
        KEY_DOCUMENTS,
        HOOK_DOCUMENTS,
        SUBSCRIPTION_DOCUMENTS,
        DOCUMENT_DOCUMENTS,
    )
    install_document(app, [document for group in documents for document in group])
    app.add_middleware(
        BodyLimit,
        default=FINDING_LIMIT_BYTES,
        limits={"/v1/recall": RECALL_LIMIT_BYTES},
        below={"/v1/hooks/": DELIVERY_LIMIT_BYTES, "/v1/documents/": UPLOAD_LIMIT_BYTES},
        seconds=body_seconds,
    )
    app.add_middleware(Edge, metrics=metrics, hosts=[*LOOPBACK_HOSTS, _as_host(grandbo), *allowed_hosts])
    return app


def _as_host(grandbo: Grandbo) -> str:
    host = grandbo.settings.http_host
    return f"[{host}]" if ":" in host else host
