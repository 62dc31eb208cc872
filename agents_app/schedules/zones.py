from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MACHINE = Path("/etc/localtime")


def zone_of(name: str) -> tzinfo:
    """Without a name the machine's: Django has set this process to UTC."""
    try:
        if name:
            return ZoneInfo(name)
        with MACHINE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return ZoneInfo("UTC")
