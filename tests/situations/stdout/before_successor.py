"""Before the daemon came: a successor was handed both wires; server and successor are adopted by init."""
import situation

TRUTH = "in use"
WHEN = "before"
TWIN = "orphans/before"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    agent = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    situation.within("the agent's end", lambda: not agent.alive())
    stage.adopted(stage.who("mcp-server-fake"))
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
