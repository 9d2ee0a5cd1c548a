"""The agent closed the input and told the launcher to end, which ignores it; the last result comes late and is read."""

TRUTH = "in use"
TWIN = "abandoned/told_to_end_in_vain"


def build(stage):
    stage.part("mcp-server-batch", """
        here()
        answer(os.read(0, 65536))
        wait_for("result")
        use("server", lambda: os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": {}}\\n'))
    """)
    agent = stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"trap '' TERM; {BIN}/mcp-server-batch; true")
        os.close(server.w)
        server.child.terminate()
        here()
        def result():
            tell("go/result", "")
            return os.read(server.r, 1000) or 1 / 0
        on_call("claude", result)
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])
