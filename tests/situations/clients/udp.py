#!/usr/bin/python3 -B
"""The server answers over UDP; its client goes on asking; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-dns", """
        in_background(answer_calls, listen("udp"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-dns")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", """
        connection = dial("udp", "mcp-server-dns")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-dns")])


situation.main()
