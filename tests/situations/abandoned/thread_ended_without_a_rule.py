"""The same below a gateway of which no rule says that its servers end with their threads."""

TRUTH = "in use"
TWIN = "abandoned/thread_ended"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        kept = []
        ends = threading.Thread(target=lambda: kept.append(start("mcp-server-fake")))
        ends.start()
        ends.join()
        here()
        on_call("claude", kept[0].ask)
    """))
    stage.when_called("claude", stage.who("claude"))
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
