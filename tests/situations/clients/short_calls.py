"""The server speaks HTTP too; its client uses short connections and closes first (TIME_WAIT at the client). The agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'mcp-server-web'))\n"))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-web")])
