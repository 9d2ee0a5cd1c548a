"""The successor is a program that no rule knows, younger than the server."""
import situation

TRUTH = "in use"
TWIN = "orphans/siblings"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    first = stage.run(stage.part("chat_host.py", """
        server = start("mcp-server-fake")
        hand_on(server, "helper.py")
    """))
    stage.beats("helper")
    situation.within("the first's end", lambda: not first.alive())
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
