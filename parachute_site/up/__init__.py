"""`manage.py up`: starts everything on one machine, keeps it alive, and leaves nothing behind.

    checks.py      what it refuses to start with
    plan.py        which processes, as data
    start.py       the order of starting, and the stop
    supervisor.py  keeps processes alive; ends them and whatever they left
    processes.py   the system's processes: whose they are, and how they are ended
    containers.py  those that an earlier `up` left behind
    output.py      one stream of lines, and a file for each process
    valkey.py      the embedded Valkey
    health.py      asks the server whether it is ready

Nothing here imports Django: an idle `up` should cost next to nothing.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing

from parachute_site import env
from parachute_site.env import BadEnvironment, Environment
from parachute_site.up import checks, containers, output, plan, processes, start
from parachute_site.up.plan import Plan

USAGE = "usage: manage.py up [--public]"
AS_ROOT = (
    "running as root: behind a wall of bubblewrap what agents make is root's, setuid files too, and their "
    "processes may go uncounted; better run it as a plain user, see docs/sandboxes.md"
)


def main(arguments: Sequence[str], make_plan: Callable[[Environment], Plan] = plan.make) -> int:
    if set(arguments) - {"--public"}:
        print(USAGE, file=sys.stderr)
        return 0 if set(arguments) <= {"-h", "--help"} else 2
    output.open_what_is_closed()
    try:
        return _up(env.load(), make_plan, public="--public" in arguments)
    except (BadEnvironment, checks.Refused) as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    except KeyboardInterrupt:  # before anything was started
        return 0


def _up(environment: Environment, make_plan: Callable[[Environment], Plan], *, public: bool) -> int:
    checks.host_is_meant(environment, public=public)
    checks.vault_is_usable(environment.vault)
    checks.make_home(environment.home)
    with checks.home_is_ours_alone(environment.home), closing(output.Output(environment.log_folder)) as lines:
        if os.getuid() == 0:
            lines.say(AS_ROOT)
        if ended := processes.end_marked(environment.owner):
            lines.say(f"ended what an earlier `up` left behind: {ended} processes")
        if ended := containers.end_left(environment):
            lines.say(f"ended what an earlier `up` left behind: {ended} containers")
        checks.make_run_folder(environment.run)
        checks.port_is_free(environment.host, environment.port)
        return asyncio.run(start.run(environment, make_plan(environment), lines))
