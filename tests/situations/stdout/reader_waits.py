"""Somebody waits for a result that takes long: neither reader nor server does anything for now."""

TRUTH = "in use"
TWIN = "orphans/stderr_is_read"


def build(stage):
    stage.part("mcp-server-slow", """
        answer(os.read(0, 65536))
        here()
        signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"result\\n"))
        rest()
    """)
    stage.part("collector", """
        tell("beats/collector", "0")
        here()
        if os.read(0, 1000) == b"result\\n":
            use("collector", lambda: None)
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-slow")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        here()
        rest()
    """))
    stage.who("claude")
    server, collector = stage.who("mcp-server-slow"), stage.who("collector")
    stage.when_called("collector", server)
    agent.kill()
    return stage.truth(in_use=[server, collector])
