#!/usr/bin/python3 -B
"""A server listens on a vsock, for virtual machines; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
        listener.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
        listener.listen()
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])


situation.main()
