"""A launcher is told to start a service: the service closed its standard streams by itself, the agent closed its ends, and lives."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        answer(os.read(0, 65536))
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        here()
        use("service", lambda: None)
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        present("mcp-server-fake")
        server.let_go()
        here()
        rest()
    """))
    stage.beats("service")
    return stage.truth(in_use=[agent, stage.who("claude"), stage.who("mcp-server-fake")])
