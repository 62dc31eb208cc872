"""The order of starting: Valkey, `prepare`, the others, ready. And the stop."""

import asyncio
import json
from dataclasses import dataclass

from parachute_site.env import ANY, Environment
from parachute_site.up import health, valkey
from parachute_site.up.checks import Refused
from parachute_site.up.output import Output
from parachute_site.up.plan import Child, Plan
from parachute_site.up.supervisor import Supervisor

VALKEY_PATIENCE = 10.0
READY_PATIENCE = 60.0


@dataclass(frozen=True)
class Prepared:
    """What the database says: it may hold a folder and a key that were chosen in the page."""

    sign_in: str
    vault: str
    model: str | None  # its address; none: the demo


async def run(environment: Environment, plan: Plan, output: Output) -> int:
    """Until a signal comes, or starting fails. A signal may come in the middle of starting, too."""
    supervisor = Supervisor(output)
    supervisor.listen()
    starting = asyncio.create_task(_start(environment, plan, supervisor, output))
    told = asyncio.create_task(supervisor.told_to_stop.wait())
    try:
        await asyncio.wait({starting, told}, return_when=asyncio.FIRST_COMPLETED)
        if not told.done():
            await starting  # raises what kept us from starting
            await told
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await supervisor.stop()
    output.say("everything has stopped")
    return 0


async def _start(environment: Environment, plan: Plan, supervisor: Supervisor, output: Output) -> None:
    if plan.valkey:
        supervisor.keep(plan.valkey)
        await _valkey_answers(environment)
    prepared = await _prepare(environment, plan.prepare, supervisor, output)
    for child in plan.others:
        supervisor.keep(child)
    await _ready(environment, output)
    output.show(_banner(environment, prepared))


async def _valkey_answers(environment: Environment) -> None:
    try:
        async with asyncio.timeout(VALKEY_PATIENCE):
            while not await valkey.answers(environment):  # noqa: ASYNC110 - no event tells of a socket
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        log = environment.log_folder / "valkey.log"
        raise Refused(f"The embedded Valkey does not answer. What it said is in {log}.") from error


async def _prepare(
    environment: Environment, child: Child, supervisor: Supervisor, output: Output
) -> Prepared:
    """Migrations and the first admin; the path of the one-time link, which no file may hold."""
    code, written, errors = await supervisor.once(child)
    said = [line for line in errors.splitlines() if line.strip()]
    if code == 2 and said:
        raise Refused(said[-1].decode(errors="replace"))
    for line in said:
        output.line(child.name, line)
    if code != 0:
        log = environment.log_folder / f"{child.name}.log"
        raise Refused(f"`manage.py {child.name}` ended with exit code {code}. What it said is in {log}.")
    found = json.loads(written)
    return Prepared(found["signIn"], found["vault"], found["model"])


async def _ready(environment: Environment, output: Output) -> None:
    clock = asyncio.get_running_loop().time
    pause, until = 0.15, clock() + READY_PATIENCE
    while (answer := await health.ask(environment))[0] != 200:
        if clock() > until:
            output.say(f"still not ready; /api/health/ready answers: {answer[0] or ''} {answer[1]}")
            pause, until = 2.0, clock() + READY_PATIENCE
        await asyncio.sleep(pause)


def _banner(environment: Environment, prepared: Prepared) -> str:
    host = environment.host
    if host in ANY:  # nobody can type that
        host = environment.allowed_hosts[0].lstrip("*.") or host
    address = f"http://{health.name(host)}:{environment.port}"
    model = prepared.model or "demo, as no API key is set"
    return f"""
  Parachute is ready   {address}
  vault                {prepared.vault}
  model                {model}
  sign in, once        {address}{prepared.sign_in}
                       (within 10 minutes; `make signin` or `python manage.py signin` makes another)
"""
