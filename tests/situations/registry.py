"""The registry of sessions for situations: a Redis server, which the runner has started and all situations share.

A script that uses this says `NEEDS = ["redis"]`. The names of its sessions are its own; no script may empty the server. A server is
started for a session with `env=of_session(name)` (`part.of_session`).
"""
import os
import socket

import situation
from situation import Broken

VARIABLE = "ORPHAND_SITUATION_REDIS"


class Registry:
    """The registry, in which these sessions have a key."""

    def __init__(self, *sessions):
        port = os.environ.get(VARIABLE)
        if not port:
            raise Broken(f"{VARIABLE} names no port of a Redis server of our own")
        self.line = socket.create_connection(("127.0.0.1", int(port)), situation.PATIENCE)
        for session in sessions:
            self._order("SET", self._key(session), "x")

    def end(self, session):
        """The session ends: its key is deleted."""
        self._order("DEL", self._key(session))

    def _key(self, session):
        return f"mcp:session:{os.path.basename(os.environ[situation.VARIABLE])}-{session}"

    def _order(self, *words):
        self.line.sendall(" ".join(words).encode() + b"\r\n")
        answer = self.line.recv(100)
        if answer not in (b"+OK\r\n", b":1\r\n"):
            raise Broken(f"Redis answers {words} with {answer!r}")
