"""Somebody duplicated the agent's ends of the wires by pidfd_getfd and talks; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        tell("go/wire", str(server.w))
        here()
        rest()
    """))
    stage.who("claude")
    user = stage.run(stage.part("tap.py", """
        wire = steal_fd(present("claude"), int(open(f"{DIR}/go/wire").read()))
        here()
        use("tap", Server(wire, wire).ask)
    """))
    stage.beats("tap")
    agent.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])
