"""The agent closed both ends and goes on over HTTP, which the server speaks too, with long pauses."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-web")
        server.let_go()
        here()
        on_call("claude", lambda: call("tcp", "mcp-server-web"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-web")])
