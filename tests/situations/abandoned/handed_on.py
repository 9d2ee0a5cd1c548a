"""The agent handed the wires to another program of it and closed its own ends: the program uses the server."""

TRUTH = "in use"
TWIN = "abandoned/let_go_socket"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("worker", """
        server = handed()
        use("worker", server.ask)
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        hand_on(server, "worker")
        server.let_go()
        here()
        rest()
    """))
    stage.beats("worker")
    return stage.truth(in_use=[agent, stage.who("worker"), stage.who("mcp-server-fake")])
