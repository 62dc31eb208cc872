"""The fake: no wall, but it keeps what it was asked to confine."""

from .base import Launch


class Recorded:
    name = "recorded"
    is_wall = False
    install = ""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def unavailable(self) -> str | None:
        return None

    def confine(self, launch: Launch) -> Launch:
        self.launches.append(launch)
        return launch

    def end(self, mark: str) -> None:
        return

    def sweep(self) -> None:
        return
