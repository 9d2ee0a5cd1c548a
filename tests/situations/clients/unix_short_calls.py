"""A client calls again and again over a unix socket, which leaves no TIME_WAIT; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-broker", """
        in_background(answer_calls, listen("unix"))
        serve()
    """)
    agent = stage.agent("mcp-broker")
    stage.run(stage.part("person", "use('person', lambda: call('unix', 'mcp-broker'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-broker")])
