"""A server that speaks HTTP was started with /dev/null for its input, and the agent closed its output."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        here()
        rest_in_a_thread()
    """)
    agent = stage.run(stage.part("claude", """
        r, w = os.pipe()
        start("mcp-server-web", wire=None, stdout=w)
        os.close(w)
        present("mcp-server-web")
        os.close(r)
        here()
        on_call("claude", lambda: call("tcp", "mcp-server-web"))
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-web")])
