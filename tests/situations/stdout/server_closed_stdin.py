"""The server closed its own input and works off what it was asked; a successor of the agent reads the results."""

TRUTH = "in use"
TWIN = "orphans/closed_stdin"


def build(stage):
    stage.part("mcp-server-batch", """
        here()
        os.read(0, 65536)
        os.close(0)
        for count in range(1000):
            os.write(1, b'{"result":{}}\\n')
            time.sleep(0.2)
    """)
    stage.part("collector", "here()\nuse('collector', lambda: os.read(0, 1000) or 1 / 0)\n")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        start("collector", wire=None, stdin=server.r)
        present("collector")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("collector")
    agent.kill()
    return stage.truth(in_use=[stage.who("collector"), stage.who("mcp-server-batch")])
