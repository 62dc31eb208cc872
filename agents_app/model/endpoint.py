"""Where a model answers. Known to `up` before there is a Django, so nothing of it is imported here."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

ANTHROPIC = "https://api.anthropic.com"
OAUTH_BETA = "oauth-2025-04-20"  # the API takes such a token only from who says this


class Credential(StrEnum):
    API_KEY = "api_key"
    AUTH_TOKEN = "auth_token"  # noqa: S105 - the name of a kind
    OAUTH = "oauth"


@dataclass(frozen=True)
class ModelEndpoint:
    """Where the model answers, and the header that opens it. With `socket`, the host of `url` is a name, and
    in a setting it is the demo model. With `problem`, it cannot be asked, and the sentence says why."""

    url: str
    header: tuple[str, str] | None = field(default=None, repr=False)
    socket: Path | None = None
    beta: str = ""
    problem: str = ""

    @property
    def is_demo(self) -> bool:
        return self.socket is not None


def opened_with(url: str, kind: Credential, secret: str) -> ModelEndpoint:
    if kind is Credential.API_KEY:
        return ModelEndpoint(url, ("x-api-key", secret))
    beta = OAUTH_BETA if kind is Credential.OAUTH else ""
    return ModelEndpoint(url, ("authorization", f"Bearer {secret}"), beta=beta)
