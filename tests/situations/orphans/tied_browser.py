"""A server's browser has a session of its own but keeps fd 2 as a socket to it, as puppeteer's do; the agent is killed, both stay."""

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
    agent = stage.agent("mcp-server-browser")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-browser"), stage.who("chromium")])
