"""The rule says thread_scoped; a forked copy of the gateway has the wires of the server and may use it."""

TRUTH = "in use"
TWIN = "abandoned/thread_ended"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("threaded-gateway", """
        kept = []
        ends = threading.Thread(target=lambda: kept.append(start("mcp-server-fake")))
        ends.start()
        ends.join()
        copy(lambda: on_call("worker", kept[0].ask), alias="worker")
        here()
        rest()
    """))
    stage.who("threaded-gateway")
    stage.when_called("worker", stage.who("worker"))
    return stage.truth(in_use=[agent, stage.who("worker"), stage.who("mcp-server-fake")])
