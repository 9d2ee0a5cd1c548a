"""A server of the dead agent holds the wire of its sibling and talks through it: it is its client now, and has clients itself."""

TRUTH = "in use"
TWIN = "orphans/siblings"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("mcp-gateway", """
        server = handed()
        def work():
            listener = listen("tcp")
            while True:
                with listener.accept()[0] as call:
                    while call.recv(100):
                        server.ask()
                        call.sendall(b"pong")
        in_background(work)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        start("mcp-gateway", *words(server), pass_fds=[server.w, server.r])
        here()
        rest()
    """))
    stage.who("claude")
    person = stage.run(stage.part("person", """
        gateway = dial("tcp", "mcp-gateway")
        use("person", lambda: ask_over(gateway))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-gateway"), stage.who("mcp-server-fake")])
