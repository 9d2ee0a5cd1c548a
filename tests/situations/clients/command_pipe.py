#!/usr/bin/python3 -B
"""A person commands the server through an anonymous pipe on a further descriptor; the agent is killed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        r, w = map(int, argument("--pipes").split(","))
        def attend():
            while os.read(r, 100):
                os.write(w, b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        (far_r, w), (r, far_w) = os.pipe(), os.pipe()
        start("mcp-server-fake", "--pipes", f"{far_r},{far_w}", pass_fds=[far_r, far_w])
        start("worker", "--pipes", f"{r},{w}", wire=None, pass_fds=[r, w])
        present("worker")
        here()
        rest()
    """))
    stage.part("worker", """
        r, w = map(int, argument("--pipes").split(","))
        here()
        def ask():
            os.write(w, b"ping")
            if os.read(r, 100) != b"pong":
                raise EOFError
        use("worker", ask)
    """)
    stage.who("claude")
    stage.beats("worker")
    agent.kill()
    return stage.truth(in_use=[stage.who("worker"), stage.who("mcp-server-fake")])


situation.main()
