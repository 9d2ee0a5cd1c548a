"""A duplicate does nothing while a newer one is in use, and the agent's rule has idle_duplicates."""

TRUTH = "mixed"
TWIN = "idle_duplicates/without_a_rule"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        older, newer = two()
        here()
        use("tidy-gateway", newer.ask)
    """))
    stage.beats("tidy-gateway")
    return stage.truth(orphans=[stage.who("older")], in_use=[agent, stage.who("newer")])
