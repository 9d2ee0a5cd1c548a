#!/usr/bin/python3 -B
"""A home-made host and its server, which no rule knows, are idle."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "protocol/home_made"


def build(stage):
    stage.server("server.py", "timer")
    host = stage.run(stage.part("chat_host.py", """
        server = session("server.py")
        here()
        on_call("host", server.ask)
    """))
    stage.when_called("host", stage.who("chat_host.py"))
    return stage.truth(in_use=[host, stage.who("server.py")])


situation.main()
