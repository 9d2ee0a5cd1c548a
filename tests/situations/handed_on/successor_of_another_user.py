"""The successor gave up its rights and is another user than the server."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    first = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        hand_on(server, "helper.py", user=65534, group=65534, extra_groups=[])
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("helper")
    first.kill()
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
