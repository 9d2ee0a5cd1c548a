"""Processes of a situation, as its script sees them: by number and birth."""
import os
import signal
import time

PATIENCE = 120.0  # seconds that anything may take before the situation counts as broken
LOOK_AGAIN = 0.02  # seconds between two looks at what has no descriptor to wait on


class Broken(Exception):
    """The situation could not be built."""


def within(what, look, patience=PATIENCE):
    """What `look` gives as soon as that is true in the sense of Python."""
    deadline = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Broken(f"not within {patience:.0f} s: {what}")
        time.sleep(LOOK_AGAIN)


class Process:
    """A process by number and birth (clock ticks since boot, field 22 of /proc/PID/stat)."""

    def __init__(self, pid, start=None):
        self.pid = int(pid)
        self.start = start if start is not None else (self._stat() or [None, None])[1]

    def _stat(self):
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as f:
                fields = f.read().rpartition(b")")[2].split()
        except OSError:
            return None
        # A leader that has exited before its threads shows as a zombie.
        alive = fields[0] not in (b"Z", b"X") or int(fields[17]) > 1
        return alive, int(fields[19]), int(fields[1]), int(fields[3])

    def alive(self):
        """Whether it runs; a zombie does not."""
        stat = self._stat()
        return bool(stat and stat[1] == self.start and stat[0])

    def sleeps(self):
        """Whether it waits in the kernel and has done nothing for half a second."""
        def done():
            with open(f"/proc/{self.pid}/schedstat") as f:
                return f.read().split()[0]
        before = done()
        time.sleep(0.5)
        with open(f"/proc/{self.pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[0] == b"S" and done() == before

    def parent(self):
        stat = self._stat()
        return stat[2] if stat else None

    def session(self):
        stat = self._stat()
        return stat[3] if stat else None

    def argv(self):
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as f:
                return f.read().decode(errors="replace").split("\0")[:-1]
        except OSError:
            return []

    def kill(self, number=signal.SIGKILL, wait=True):
        """Signal it; wait until it is gone (`wait`)."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive():
                signal.pidfd_send_signal(pidfd, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(pidfd)
        if wait:
            within(f"the end of {self}", lambda: not self.alive())
            self.bury()

    def bury(self):
        """Collect it if it is a child of ours that has ended."""
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pass

    def told(self):
        return {"pid": self.pid, "start": self.start}

    def __eq__(self, other):
        return (self.pid, self.start) == (other.pid, other.start)

    def __hash__(self):
        return hash((self.pid, self.start))

    def __repr__(self):
        return f"{self.pid}@{self.start}"
