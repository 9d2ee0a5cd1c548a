"""A host runs `server | reader` in a shell, gives it its input to the end, and reads what comes out."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("reader", "here()\nwhile True:\n    os.write(1, os.read(0, 1000))\n")
    agent = stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-batch | {BIN}/reader", asked=False)
        os.write(server.w, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n')
        os.close(server.w)
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch"), stage.who("reader")])
