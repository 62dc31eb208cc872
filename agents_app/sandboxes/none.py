"""No wall: for people who gave an agent the whole computer."""

from .base import Launch


class NoWall:
    name = "none"
    is_wall = False
    install = ""

    def unavailable(self) -> str | None:
        return None

    def confine(self, launch: Launch) -> Launch:
        return launch

    def end(self, mark: str) -> None:
        return

    def sweep(self) -> None:
        return
