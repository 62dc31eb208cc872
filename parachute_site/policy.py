"""What a page of ours may load: only what this server serves, and nothing inline."""

from django.http import HttpRequest, HttpResponse

from parachute_site.middleware import WithoutHop

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


class ContentSecurityPolicy(WithoutHop):
    """On every answer, whoever gave it: it stands outermost."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response
