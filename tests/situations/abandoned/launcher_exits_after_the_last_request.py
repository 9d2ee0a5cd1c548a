"""A launcher exits by itself while the agent, which closed the input, still reads the results of the server."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"exec 3<&0; {BIN}/mcp-server-batch <&3 3<&- & sleep 1")
        os.close(server.w)
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])
