"""A server that opted out goes on and uses its sibling; the agent of both is killed."""

TRUTH = "in use"
TWIN = "orphans/siblings"


def build(stage):
    stage.part("mcp-server-a", """
        other = handed()
        in_background(use, "a", other.ask)
        read_on()
        leak_on("timer")
    """)
    stage.server("mcp-server-b", "timer")
    agent = stage.run(stage.part("claude", """
        b = start("mcp-server-b")
        start("mcp-server-a", *words(b), pass_fds={b.w, b.r}, env={**os.environ, "ORPHAND_OPT_OUT": "1"})
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("a")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-a"), stage.who("mcp-server-b")])
