#!/usr/bin/python3 -B
"""The results are read by a collector that is older than the agent and was sent the read end."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    collector = stage.run(stage.part("collector", """
        conn = listen("unix").accept()[0]
        r, = receive_fds(conn, 1)
        conn.close()
        use("collector", lambda: os.read(r, 1000) or 1 / 0)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        send_fds(dial("unix", "collector"), server.r)
        os.close(server.w)
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("collector")
    agent.kill()
    return stage.truth(in_use=[collector, stage.who("mcp-server-batch")])


situation.main()
