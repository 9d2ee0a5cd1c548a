"""A server uses its sibling; the wires of the first were handed to a successor, which uses it; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/siblings"


def build(stage):
    stage.part("mcp-server-a", """
        w, r = map(int, argument("--wires").split(","))
        other = Server(w, r)
        def ask():
            other.ask()
            return True
        here()
        pending = b""
        while True:
            data = os.read(0, 65536)
            if not data:
                break
            for line in data.splitlines():
                ask()
                answer(line)
        leak_on("timer")
    """)
    stage.server("mcp-server-b", "timer")

    stage.part("worker", """
        server = handed()
        use("worker", server.ask)
    """)
    agent = stage.run(stage.part("claude", """
        b = start("mcp-server-b")
        a = start("mcp-server-a", *words(b), pass_fds={b.w, b.r})
        hand_on(a, "worker")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("worker")
    agent.kill()
    return stage.truth(in_use=[stage.who("worker"), stage.who("mcp-server-a"), stage.who("mcp-server-b")])
