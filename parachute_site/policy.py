"""What a page of ours may load: only what this server serves, and nothing inline."""

from django.http import HttpRequest, HttpResponse

from parachute_site.middleware import WithoutHop

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


# Of pages that put markup of the server into their own: only one named place may do that.
POLICY_OF_CHATS = f"{POLICY}; require-trusted-types-for 'script'; trusted-types server"


class ContentSecurityPolicy(WithoutHop):
    """On every answer, whoever gave it: it stands outermost."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response
