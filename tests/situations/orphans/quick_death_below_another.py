"""Eight times: an agent dies within a millisecond after its server's exec; the agent above it lives and has nothing to do with that server."""

TRUTH = "mixed"
TWIN = "identity/quick_death_of_a_stranger"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("claude", """
        start("mcp-server-fake", "--as", f"left{argument('--number')}", asked=False)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    outer = stage.run(stage.part("codex", """
        own = start("mcp-server-fake", "--as", "own")
        for n in range(8):
            start("claude", "--number", str(n), wire=None).wait()
        use("codex", own.ask)
    """))
    stage.beats("codex")
    return stage.truth(orphans=[stage.who(f"left{n}") for n in range(8)], in_use=[outer, stage.who("own")])
