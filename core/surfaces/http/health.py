"""GET /health: whether the service is well, without a token, so without a word that is anybody's business."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from core.surfaces.http.facts import Facts


def health_router(facts: Facts) -> APIRouter:
    """Return the route. It answers 200 while the service answers at all; what is not well is in the body."""
    router = APIRouter()

    async def health() -> Mapping[str, Any]:
        channels, tmux = facts.channels(), facts.tmux()
        return {
            "ok": tmux == "ok" and all(channels.values()),
            "service": {"pid": facts.pid, "uptimeSeconds": round(facts.uptime(), 3)},
            "tmux": tmux,
            "channels": channels,
        }

    router.add_api_route("/health", health, methods=["GET"])
    return router
