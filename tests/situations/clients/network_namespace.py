#!/usr/bin/python3 -B
"""Server and client live in a network namespace of their own, where the host's view of sockets does not reach; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("person", """
        here()
        connection = dial("tcp", "mcp-server-web")
        use("person", lambda: ask_over(connection))
    """)
    stage.part("mcp-server-web", """
        own_network()
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-web")
    stage.run("/usr/bin/nsenter", f"--net=/proc/{server.pid}/ns/net", f"{stage.dir}/bin/person")
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[server, stage.who("person")])


situation.main()
