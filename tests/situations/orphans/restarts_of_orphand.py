"""Two agents with a server each; the one is killed, and orphand is restarted again and again."""

TRUTH = "mixed"
RESTART = True


def build(stage):
    stage.server("mcp-server-fake", "timer")
    path = stage.part("claude", """
        server = start("mcp-server-fake", "--as", f"{ALIAS}.server")
        use(ALIAS, server.ask)
    """)
    agents = [stage.run(path, "--as", name) for name in ("one", "two")]
    for name in ("one", "two"):
        stage.beats(name)
    stage.over.add("one")
    agents[0].kill()
    return stage.truth(orphans=[stage.who("one.server")], in_use=[agents[1], stage.who("two.server")])
