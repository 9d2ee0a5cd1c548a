#!/usr/bin/python3 -B
"""The server answers datagrams on a unix socket that it connected to its one client; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        sock = listen("datagram")
        def attend():
            _, sender = sock.recvfrom(100)
            sock.connect(sender)
            sock.send(b"pong")
            while True:
                sock.recv(100)
                sock.send(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    stage.who("claude")

    person = stage.run(stage.part("person", """
        connection = dial("datagram", "mcp-server-fake")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("mcp-server-fake")])


situation.main()
