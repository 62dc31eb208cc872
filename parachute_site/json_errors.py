"""Under `/api/` an error is JSON, also where no operation answered: a path or a method that is not there."""

import json
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse

from parachute_site.middleware import WithoutHop, is_for_api

CODES = {
    400: ("invalid", "The request cannot be read, or this host name is not served here (see ALLOWED_HOSTS)."),
    401: ("unauthenticated", "Send a key as `Authorization: Bearer para_…` or `X-API-Key`."),
    403: ("forbidden", "This is not allowed."),
    404: ("not_found", "There is nothing here, or nothing that you may see."),
    405: ("method_not_allowed", "This path does not take that method."),
    413: ("too_large", "The body is larger than 30 MB."),
    500: ("internal", "Something failed that was not foreseen."),
}


class JsonErrors(WithoutHop):
    """The outermost of the API's middleware. It checks Host too, as CommonMiddleware does for pages."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if is_for_api(request):
            if request.method == "HEAD":  # whatever has a GET; the server leaves the body away
                request.method = "GET"
            try:
                request.get_host()
            except DisallowedHost:
                return self.process_response(request, HttpResponseBadRequest())
        return None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if not is_for_api(request) or is_json or response.status_code not in CODES:
            return response
        answer = JsonResponse(body(response.status_code), status=response.status_code)
        if allowed := response.headers.get("Allow"):
            answer["Allow"] = allowed
        return answer


def body(status: int) -> dict[str, Any]:
    code, message = CODES[status]
    return {"error": {"code": code, "message": message}}


async def answer(send: Any, status: int) -> None:
    """The same below Django, for what does not reach it."""
    headers = [(b"content-type", b"application/json"), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body(status)).encode()})
