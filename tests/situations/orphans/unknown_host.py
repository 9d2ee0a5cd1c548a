#!/usr/bin/python3 -B
"""A home-made host that no rule knows is killed; its server stays."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "copies/workers_with_servers_unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", "use('host', start('mcp-server-fake').ask)\n"))
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])


situation.main()
