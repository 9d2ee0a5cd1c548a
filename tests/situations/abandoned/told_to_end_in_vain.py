"""The agent closed the input and told the launcher to end, which ignores it; nobody reads any more."""

TRUTH = "orphan"
TWIN = "abandoned/told_to_end_works_off_its_last_request"
COST = "who was told to end may still work off the last request, and the agent can read the result"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"trap '' TERM; {BIN}/mcp-server-fake; true")
        os.close(server.w)
        server.child.terminate()
        here()
        rest()
    """))
    stage.who("claude")
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
