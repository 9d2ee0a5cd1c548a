"""A host gives a server one request and the end of its input, and waits for the result, which takes long."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-batch", """
        here()
        while os.read(0, 65536):
            pass
        wait_for("result")
        use("server", lambda: os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\\n'))
    """)
    agent = stage.run(stage.part("home-made-host", """
        server = start("mcp-server-batch", asked=False)
        os.write(server.w, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n')
        os.close(server.w)
        here()
        def result():
            tell("go/result", "")
            return os.read(server.r, 1000) or 1 / 0
        on_call("home-made-host", result)
    """))
    stage.when_called("home-made-host", stage.who("home-made-host"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])
