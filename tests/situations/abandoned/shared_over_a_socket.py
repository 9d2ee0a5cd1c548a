"""Two agents use a server over its named socket; the one that started it has let go of the wires, and is not needed."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-shared", """
        in_background(answer_calls, listen("unix"))
        serve("blocked")
    """)
    first = stage.run(stage.part("claude", """
        server = start("mcp-server-shared")
        server.let_go()
        here()
        rest()
    """))
    stage.who("claude")
    second = stage.run(stage.part("codex", """
        here()
        on_call("codex", lambda: call("unix", "mcp-server-shared"))
    """))
    stage.when_called("codex", stage.who("codex"))
    return stage.truth(in_use=[first, second, stage.who("mcp-server-shared")])
