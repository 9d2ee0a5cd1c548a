"""The rule says thread_scoped, and is wrong: another thread goes on with the server of the one that ended."""

TRUTH = "in use"
TWIN = "abandoned/thread_ended"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("threaded-gateway", """
        kept = []
        ends = threading.Thread(target=lambda: kept.append(start("mcp-server-fake")))
        ends.start()
        ends.join()
        here()
        use("threaded-gateway", kept[0].ask)
    """))
    stage.beats("threaded-gateway")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
