"""A test suite in the background of the Bash tool starts servers and talks to them; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/unknown_host"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("pytest", """
        here()
        def test():
            server = start("mcp-server-fake", "--as", "short")
            server.let_go()
            server.child.kill()
            server.child.wait()
            long.ask()
        long = start("mcp-server-fake", "--as", "long")
        use("pytest", test)
    """)
    agent = stage.run(stage.part("claude", """
        shell(f"nohup {BIN}/pytest -k servers > pytest.log 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("pytest")
    agent.kill()
    return stage.truth(in_use=[stage.who("pytest"), stage.who("long")])
