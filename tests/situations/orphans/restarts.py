"""A gateway was restarted three times and left two servers each time; the fourth works with its own."""

TRUTH = "mixed"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    path = stage.part("claude", """
        servers = [start("mcp-server-fake", "--as", f"{ALIAS}.{n}") for n in range(2)]
        use(ALIAS, lambda: [server.ask() for server in servers])
    """)
    runs = []
    for n in range(4):
        runs.append(stage.run(path, "--as", f"run{n}"))
        if n < 3:
            stage.was_used(f"run{n}", 1)
            runs[n].kill()
    stage.beats("run3", 1)
    servers = [stage.who(f"run{n}.{m}") for n in range(4) for m in range(2)]
    return stage.truth(orphans=servers[:6], in_use=[runs[3], *servers[6:]])
