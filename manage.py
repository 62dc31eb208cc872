#!/usr/bin/env python
"""The one command: `up` runs everything, whatever else is a command of Django."""

import os
import sys

from parachute_site import env
from parachute_site.env import BadEnvironment


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "parachute_site.settings")
    try:
        if sys.argv[1:2] == ["up"]:
            from parachute_site import up  # before Django is imported, and without it: `up` stays small

            return up.main(sys.argv[2:])
        if sys.argv[1:] == ["run_bots"]:
            from parachute_site.up import waiting

            waiting.wait_for_a_token(env.load())
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except BadEnvironment as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
