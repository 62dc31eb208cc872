"""Whether a model would take a key: asked once, before the key is kept."""

import asyncio

from django.utils.translation import gettext as _

from agents_app.model.endpoint import Credential, ModelEndpoint
from sessions_app.errors import Invalid

PATIENCE = 5.0  # seconds; a person waits for the page
ANSWER = "2023-06-01"  # of `anthropic-version`, without which the API answers nothing


def check(endpoint: ModelEndpoint, kind: Credential) -> str:
    """Nothing, or what is doubtful about it; `Invalid` where the model does not take it."""
    status = asyncio.run(_status(endpoint))
    if status is None:
        return _("%(url)s could not be reached, so nobody has checked the key.") % {"url": endpoint.url}
    if status == 401 or (status == 403 and kind is not Credential.OAUTH):
        refused = _("The model does not accept this key (%(status)s). Copy it once more.")
        raise Invalid.field("key", refused % {"status": status})
    if 300 <= status < 400:
        raise Invalid.field("address", _("This address leads elsewhere. Give the one where it ends."))
    if status != 200:
        facts = {"url": endpoint.url, "status": status}
        return _("%(url)s answered %(status)s, so nobody has checked the key.") % facts
    return ""


async def _status(endpoint: ModelEndpoint) -> int | None:
    """None where nothing answers. A redirect is not followed: the key would go along."""
    import aiohttp  # 10 MB that a web process needs only here

    headers = {"anthropic-version": ANSWER}
    if endpoint.header:
        headers |= dict([endpoint.header])
    if endpoint.beta:
        headers["anthropic-beta"] = endpoint.beta
    limit = aiohttp.ClientTimeout(total=PATIENCE)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as client,
            client.get(f"{endpoint.url}/v1/models", headers=headers, allow_redirects=False) as answer,
        ):
            return answer.status
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
