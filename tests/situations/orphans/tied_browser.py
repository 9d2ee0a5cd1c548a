#!/usr/bin/python3 -B
"""A server's browser has a session of its own but keeps fd 2 as a socket to it, as puppeteer's do; the agent is killed, both stay."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import situation

TRUTH = "orphan"
TWIN = "let_go/browser"


def build(stage):
    stage.part("chromium", "here()\nrest()\n")
    stage.part("mcp-server-browser", """
        near, far = socket.socketpair()
        start("chromium", wire=None, stderr=far, start_new_session=True)
        far.close()
        present("chromium")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-browser")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-browser"), stage.who("chromium")])


situation.main()
