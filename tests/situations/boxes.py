"""Containers of situations, in a Docker or a podman that the runner has started and all situations share.

A script that uses this says `NEEDS = ["docker"]` or `NEEDS = ["podman"]`. Its agents start containers by `part.box`; their names are the situation's own.
"""
import os
import subprocess

import situation
from situation import Broken, Process, within

VARIABLE = "ORPHAND_SITUATION_DOCKER"
PATIENCE = 200.0  # seconds that a container may take to start on a busy machine


class Docker:
    """Docker, for everybody in the situation. `asked`: the daemon asks it, too; else its clients use a socket that the daemon
    is not told of."""

    def __init__(self, stage, asked=True):
        folder = os.environ.get(VARIABLE)
        if not folder:
            raise Broken(f"{VARIABLE} names no folder of a Docker of our own")
        self.stage = stage
        self.words = ["/usr/bin/docker"]
        os.environ["DOCKER_HOST"] = f"unix://{folder}/{'engine' if asked else 'other'}.sock"

    def call(self, *words):
        """What the engine's client prints."""
        done = subprocess.run([*self.words, *words], capture_output=True, text=True)
        if done.returncode:
            raise Broken(f"{self.words[0]} {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def first(self, name):
        """The first process of this container, as soon as it runs."""
        return self._first_of(self._called(name))

    def _first_of(self, container):
        def look():
            try:
                runs, pid = self.call("inspect", "--format", "{{.State.Running}} {{.State.Pid}}", container).split()
            except Broken:
                return None
            return Process(pid) if runs == "true" and int(pid) else None

        process = within(f"the container {container}", look, PATIENCE)
        self.stage.named.add(process)
        return process

    def pair(self, name):
        """The client that started this container, and the container's first process."""
        inside = self.first(name)
        return [self.client("run", self._called(name)), inside]

    def labelled(self, name):
        """The same for a container without a name that has this label."""
        look = lambda: self.call("ps", "--quiet", "--no-trunc", "--filter", f"label={self._called(name)}")
        container = within(f"the container with the label {name}", look, PATIENCE)
        return [self.client("run", self._called(name)), self._first_of(container)]

    def client(self, *words):
        """The living client with all these words in its command line."""
        is_it = lambda argv: argv[:1] == self.words[:1] and all(word in argv for word in words)
        found = within(f"a client with {words}", lambda: [p for p in self.stage.everyone() if is_it(p.argv())])
        return found[0]

    def _called(self, name):
        return f"{os.path.basename(self.stage.dir)}-{name}"


class Podman(Docker):
    """podman, in the same way. The daemon asks it."""

    def __init__(self, stage):
        words = os.environ.get("ORPHAND_SITUATION_PODMAN")
        if not words:
            raise Broken("no podman of our own")
        self.stage = stage
        self.words = words.split(" ")
        os.environ["ORPHAND_SITUATION_CLIENT"] = words


def engine(stage, name):
    """The engine of this name, for everybody in the situation."""
    return {"docker": Docker, "podman": Podman}[name](stage)
