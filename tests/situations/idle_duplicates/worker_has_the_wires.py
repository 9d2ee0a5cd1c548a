"""A forked copy of the agent has the wires of the older one, and may use it."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        older, newer = two()
        copy(lambda: on_call("worker", older.ask), alias="worker")
        here()
        use("tidy-gateway", newer.ask)
    """))
    stage.beats("tidy-gateway")
    stage.when_called("worker", stage.who("worker"))
    return stage.truth(in_use=[agent, stage.who("worker"), stage.who("older"), stage.who("newer")])
