#!/usr/bin/python3 -B
"""The name of a server says little, but its home-made host, which is killed, spoke the protocol to it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "others/job_named_like_a_server"


def build(stage):
    stage.server("mcp-notes", "timer")
    host = stage.run(stage.part("chat_host.py", "use('host', session('mcp-notes').ask)\n"))
    stage.was_used("host")
    host.kill()
    return stage.truth(orphans=[stage.who("mcp-notes")])


situation.main()
