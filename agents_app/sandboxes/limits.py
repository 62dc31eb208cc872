"""How much of the machine what runs behind a wall may take."""

import resource
from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """`memory`, `processes` and `cpus` are of all of it together where the system can count that (a container
    always, bubblewrap where control groups can be made); the others are of each process, or file."""

    memory: int = 4096 * MB
    processes: int = 512
    files: int = 4096  # open at once
    file_size: int = 1024 * MB
    cpu: int = 3600  # seconds of computing
    scratch: int = 512 * MB  # /tmp, /var/tmp and the home, each; what a session keeps on the disk
    cpus: float = 2.0  # of a container
    time: int = 3600  # seconds that a container lives at most

    def of_a_process(self) -> dict[int, int]:
        """As the launcher sets them. Not RLIMIT_AS: the CLI reserves a hundred times what it uses. Nor
        RLIMIT_NPROC, which would count whatever else the server's user runs."""
        return {
            resource.RLIMIT_DATA: self.memory,
            resource.RLIMIT_NOFILE: self.files,
            resource.RLIMIT_FSIZE: self.file_size,
            resource.RLIMIT_CPU: self.cpu,
            resource.RLIMIT_CORE: 0,
        }
