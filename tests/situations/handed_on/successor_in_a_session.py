"""The successor has a session of its own and was started by a double fork."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    first = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        def middle():
            os.setsid()
            hand_on(server, "helper.py")
        os.waitpid(copy(middle), 0)
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("helper")
    first.kill()
    return stage.truth(in_use=[stage.who("helper.py"), stage.who("mcp-server-fake")])
