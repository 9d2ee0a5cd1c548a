"""Now and then the agent calls the older one, too: its thread goes on."""

TRUTH = "in use"
TWIN = "idle_duplicates/idle"


def build(stage):
    stage.server()
    agent = stage.run(stage.part("tidy-gateway", """
        older, newer = two()
        here()
        def both():
            for _ in range(6):
                newer.ask()
                time.sleep(0.25)
            older.ask()
        use("tidy-gateway", both)
    """))
    stage.beats("tidy-gateway")
    return stage.truth(in_use=[agent, stage.who("older"), stage.who("newer")])
