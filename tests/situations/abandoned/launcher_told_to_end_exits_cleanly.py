"""The agent closed the input and told the launcher to end, which exits with success and leaves the server behind."""

TRUTH = "orphan"
TWIN = "abandoned/launcher_exits_after_the_last_request"
COST = "a launcher that exits with success may have done its work, and the agent can read the results"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.run(stage.part("claude", """
        server = start("/bin/bash", "-c", f"trap 'exit 0' TERM; {BIN}/mcp-server-fake <&0 & wait")
        os.close(server.w)
        server.child.terminate()
        server.child.wait()
        here()
        rest()
    """))
    stage.who("claude")
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
