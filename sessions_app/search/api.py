from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from sessions_app.access.caller import Caller
from sessions_app.api import caller_of
from sessions_app.schemas import refusals
from sessions_app.search.finding import Scope, Wish, find
from sessions_app.search.schemas import SearchQuery, SearchResult, SearchResults
from sessions_app.threads import in_thread

router = Router(tags=["search"], by_alias=True)


@router.get(
    "/search",
    response={200: SearchResults, **refusals(401, 403, 422)},
    summary="Find chats and notes",
    description="In all that you may see: your own chats, what is shared with you, and the notes of your "
    "workspaces. Best first, each chat or note once, with the part that fits.",
)
async def search(request: HttpRequest, query: Query[SearchQuery]) -> Any:
    return await in_thread(_found)(caller_of(request), query.as_wish())


def _found(caller: Caller, wish: Wish) -> SearchResults:
    hits = find(Scope.of_caller(caller), wish)
    return SearchResults.model_construct(results=[SearchResult.of(hit) for hit in hits])
