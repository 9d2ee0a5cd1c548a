"""A supervisor that the agent had started keeps a server as a service and logs through pipes; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-web", """
        listener = listen("tcp")
        here()
        in_background(answer_calls, listener)
        use("service", lambda: os.write(1, b"log\\n"))
    """)
    stage.part("supervisord", """
        def daemon():
            os.setsid()
            here()
            server = start("mcp-server-web", asked=False)
            while os.read(server.r, 1000):
                pass
        copy(daemon)
    """)
    agent = stage.run(stage.part("claude", """
        start("supervisord", wire=None).wait()
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("service")
    agent.kill()
    return stage.truth(in_use=[stage.who("supervisord"), stage.who("mcp-server-web")])
