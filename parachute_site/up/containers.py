"""Containers outlive a worker that was killed: their engine holds them."""

from agents_app.sandboxes.container_engine import Engine
from parachute_site import env
from parachute_site.env import Environment

ENGINES = ("docker", "podman")


def end_left(environment: Environment) -> int:
    """Ends all that belong to the home, and says how many there were."""
    ended = 0
    for program in ENGINES:
        engine = Engine(program, environment.sandbox_image, environment.owner, environment=env.for_engines())
        left = engine.left(of_worker=False)
        engine.remove(*left)
        ended += len(left)
    return ended
