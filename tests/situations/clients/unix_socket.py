"""Two clients share a broker over its unix socket; the agent that started it is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-broker", """
        in_background(answer_calls, listen("unix"))
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-broker", wire="socket")
        here()
        rest()
    """))
    stage.who("claude")
    person = stage.part("person", """
        connection = dial("unix", "mcp-broker")
        use(ALIAS, lambda: ask_over(connection))
    """)
    for alias in ("one", "two"):
        stage.run(person, "--as", alias)
        stage.beats(alias)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-broker")])
