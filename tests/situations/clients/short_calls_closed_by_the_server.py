"""The server speaks HTTP too; its client uses short connections and the server closes first (TIME_WAIT there). The agent ends."""
import situation

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"), closes="server")
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web", wire="socket")
        here()
    """))
    stage.who("claude")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'mcp-server-web', 'server'))\n"))
    stage.beats("person")
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[stage.who("mcp-server-web")])
