"""Django's settings. What comes from outside comes through `env.py`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import environ
from django.core.management.utils import get_random_secret_key

from parachute_site import env

BASE_DIR = Path(__file__).resolve().parent.parent
ENVIRONMENT = env.load()
VERSION = "0.1.0"

DEBUG = ENVIRONMENT.debug
PARACHUTE_HOME = ENVIRONMENT.home
if ENVIRONMENT.secret_key:
    SECRET_KEY = ENVIRONMENT.secret_key
elif PARACHUTE_HOME.is_dir():
    SECRET_KEY = env.made_once(PARACHUTE_HOME / "secret_key")
else:  # a command that runs before anything was set up, such as `check`
    SECRET_KEY = get_random_secret_key()

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *ENVIRONMENT.allowed_hosts]
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.csrf_trusted_origins)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "sessions_app",
    "permissions_app",
    "agents_app",
    "curator_app",
    "bots_app",
    "parachute_site",
]

MIDDLEWARE = [
    "parachute_site.policy.ContentSecurityPolicy",
    "parachute_site.json_errors.JsonErrors",
    "parachute_site.middleware.StaticFiles",
    "parachute_site.middleware.Connections",
    "parachute_site.middleware.Security",
    "parachute_site.middleware.Sessions",
    "parachute_site.middleware.Common",
    "parachute_site.middleware.Csrf",
    "parachute_site.middleware.Authentication",
    "parachute_site.middleware.Messages",
]

ROOT_URLCONF = "parachute_site.urls"
ASGI_APPLICATION = "parachute_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def _database() -> dict[str, Any]:
    if ENVIRONMENT.database_url:
        return dict(
            environ.Env.db_url_config(ENVIRONMENT.database_url), CONN_MAX_AGE=600, CONN_HEALTH_CHECKS=True
        )
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": PARACHUTE_HOME / "db.sqlite3",
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        },
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "signin"
LOGIN_REDIRECT_URL = "chats"
CSRF_FAILURE_VIEW = "parachute_site.pages.views.csrf_failed"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "static/"
# Swagger's files lie in ninja's package. As an app of its own it would be imported by the workers too.
_ninja = find_spec("ninja")
assert _ninja
assert _ninja.origin
STATICFILES_DIRS = [BASE_DIR / "static", Path(_ninja.origin).parent / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# A body over 30 MB is refused; what is below is read into memory once, by ninja.
DATA_UPLOAD_MAX_MEMORY_SIZE = 30 * 1024 * 1024

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [ENVIRONMENT.redis()] if PARACHUTE_HOME.is_dir() else [], "prefix": "parachute"},
    },
}
PARACHUTE_REDIS = ENVIRONMENT.redis() if PARACHUTE_HOME.is_dir() else ""
PARACHUTE_BUS = "sessions_app.streaming.bus.channel_layer"
PARACHUTE_RUNTIME = "claude"
PARACHUTE_MODELS = ENVIRONMENT.models
PARACHUTE_MODEL = ENVIRONMENT.model
PARACHUTE_MODEL_IS_SET_BY = ENVIRONMENT.model_is_set_by
PARACHUTE_SANDBOX = ENVIRONMENT.sandbox
PARACHUTE_SANDBOX_IMAGE = ENVIRONMENT.sandbox_image
PARACHUTE_LIMITS = ENVIRONMENT.limits
PARACHUTE_OWNER = ENVIRONMENT.owner
PARACHUTE_ENGINE_ENVIRONMENT = env.for_engines()
PARACHUTE_VAULT = ENVIRONMENT.vault
PARACHUTE_VAULT_IS_CHOSEN = ENVIRONMENT.vault_is_chosen
PARACHUTE_RUN = ENVIRONMENT.run
PARACHUTE_BEAT = ENVIRONMENT.beat
PARACHUTE_WORKER = ENVIRONMENT.worker_name
PARACHUTE_DRAIN = ENVIRONMENT.drain
PARACHUTE_PERMISSION_TIMEOUT = ENVIRONMENT.permission_timeout  # seconds for which a person is asked
PARACHUTE_QUESTION_TIMEOUT = ENVIRONMENT.question_timeout
PARACHUTE_CURATOR = ENVIRONMENT.curator
PARACHUTE_CURATOR_MODEL = ENVIRONMENT.curator_model
PARACHUTE_BOTS = ENVIRONMENT.bots
PARACHUTE_PLATFORMS = {
    "telegram": "bots_app.platforms.telegram.TelegramPlatform",
    "discord": "bots_app.platforms.discord.DiscordPlatform",
}
PARACHUTE_EMBEDDINGS_URL = ENVIRONMENT.embeddings_url
PARACHUTE_EMBEDDER = f"sessions_app.search.embeddings.{'served' if PARACHUTE_EMBEDDINGS_URL else 'words'}"
PARACHUTE_CLEANUP_DAYS = ENVIRONMENT.cleanup_days
PARACHUTE_WEB = ENVIRONMENT.web
PARACHUTE_AGENT_ENVIRONMENT = env.for_agents()

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "parachute_site.logs.WithoutTokens",
            "format": "{levelname} {name}: {message}",
            "style": "{",
        }
    },
    "filters": {
        "is_news": {"()": "parachute_site.logs.IsNews"},
        "without_links": {"()": "parachute_site.logs.WithoutLinks"},
    },
    "handlers": {
        "stdout": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["is_news", "without_links"],
        }
    },
    "root": {"handlers": ["stdout"], "level": "INFO"},
    "loggers": {
        "daphne": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "aiohttp.access": {"level": "WARNING"},
        "telegram.request": {"level": "CRITICAL"},  # each error comes back to us, with a traceback here
        "httpx": {"level": "WARNING"},  # a line for each poll, with the token in its address
        "discord": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
    },
}
