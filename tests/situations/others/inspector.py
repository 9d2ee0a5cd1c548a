"""A person's inspector on a terminal session talks to a server; an agent next to it is killed."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("inspector.py", "here()\nuse('inspector', start('mcp-server-fake', wire='socket').ask)\n")
    agent = stage.run(stage.part("claude", """
        shell(f"setsid {BIN}/inspector.py < /dev/null > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("inspector")
    agent.kill()
    return stage.truth(in_use=[stage.who("inspector.py"), stage.who("mcp-server-fake")])
