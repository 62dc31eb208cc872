from django.template import Library

from parachute_site.pages import markup

register = Library()
register.filter("visible", markup.visible)
