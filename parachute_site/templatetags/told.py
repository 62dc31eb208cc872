from django.template import Library

from sessions_app.storable import visible

register = Library()
register.filter("visible", visible)
