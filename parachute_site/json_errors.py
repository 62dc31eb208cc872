"""Under `/api/` an error is JSON, also where no operation answered: a path or a method that is not there."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.deprecation import MiddlewareMixin

CODES = {
    400: ("invalid", "The request cannot be read."),
    403: ("forbidden", "This is not allowed."),
    404: ("not_found", "There is nothing here, or nothing that you may see."),
    405: ("method_not_allowed", "This path does not take that method."),
    413: ("too_large", "The body is larger than 30 MB."),
    500: ("internal", "Something failed that was not foreseen."),
}


class JsonErrors(MiddlewareMixin):
    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if not request.path.startswith("/api/") or is_json or response.status_code not in CODES:
            return response
        code, message = CODES[response.status_code]
        answer = JsonResponse({"error": {"code": code, "message": message}}, status=response.status_code)
        if allowed := response.headers.get("Allow"):
            answer["Allow"] = allowed
        return answer
