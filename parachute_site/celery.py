"""Celery: a task's message is a doorbell with a session id, the rows decide what happens."""

import os
import warnings
from typing import Any

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.schedules import crontab
from celery.signals import setup_logging, worker_ready, worker_shutdown, worker_shutting_down

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "parachute_site.settings")  # noqa: TID251
from django.conf import settings

# It warns of root at each start; what it guards against is a broker that others can reach, and ours is a
# socket in a home of mode 0700, behind a password.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("parachute")
app.conf.update(
    broker_url=settings.PARACHUTE_REDIS.replace("unix://", "redis+socket://").replace(
        "?db=", "?virtual_host="
    ),
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        # A POST does not wait for a broker that is away: its turn is queued, and a sweep rings again.
        **dict.fromkeys(("max_retries", "interval_start", "interval_step", "interval_max"), 0),
    },
    task_ignore_result=True,
    task_acks_late=False,
    task_default_queue="background",
    task_routes={"agents_app.tasks.run_session": {"queue": "turns"}},
    task_publish_retry=False,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    timezone="UTC",
    beat_schedule={
        "ring-for-waiting-turns": {"task": "agents_app.tasks.ring_for_waiting_turns", "schedule": 5.0},
        "sweep-lost-turns": {"task": "agents_app.tasks.sweep_lost_turns", "schedule": 15.0},
        "tell-what-is-over": {"task": "agents_app.tasks.tell_what_is_over", "schedule": 15.0},
        "wake-sessions": {"task": "agents_app.tasks.wake_sessions", "schedule": 5.0},
        "watch-children": {"task": "agents_app.tasks.watch_children", "schedule": 30.0},
        "keep-schedules": {"task": "agents_app.tasks.keep_schedules", "schedule": 30.0},
        "sweep-grants": {"task": "agents_app.tasks.sweep_grants", "schedule": 24 * 3600.0},
        "complete-idle-sessions": {"task": "agents_app.tasks.complete_idle_sessions", "schedule": 60.0},
        "write-copies": {"task": "sessions_app.tasks.write_copies", "schedule": 10.0},
        "sweep-curator": {"task": "curator_app.tasks.sweep", "schedule": 15.0},
        "index-sessions": {"task": "sessions_app.tasks.index_sessions", "schedule": 10.0},
        "index-changed": {"task": "sessions_app.tasks.index_changed", "schedule": 60.0},
        "clean-up-old-sessions": {
            "task": "agents_app.tasks.clean_up_old_sessions",
            "schedule": crontab(hour=3, minute=10),
        },
        "seal-audit": {"task": "permissions_app.tasks.seal_audit", "schedule": 60.0},
    },
)
app.autodiscover_tasks(["agents_app", "permissions_app", "sessions_app", "curator_app"])


@setup_logging.connect
def _keep_our_logging(**kwargs: object) -> None:
    """Celery would configure the root logger itself; `settings.LOGGING` has done it."""


@worker_ready.connect
def _begin(sender: Any, **kwargs: object) -> None:
    """A turn worker opens its loop and its door; a background worker says that it lives, and beats if it is
    to. (Beat as a thread: a process of its own would cost 60 MB.)"""
    from parachute_site.workers import begin

    begin(sender.app, settings.PARACHUTE_WORKER or sender.hostname)


@worker_shutting_down.connect
def _stop(**kwargs: object) -> None:
    from parachute_site.workers import stop_soon

    stop_soon()


@worker_shutdown.connect
def _end(**kwargs: object) -> None:
    from parachute_site.workers import end

    end()
