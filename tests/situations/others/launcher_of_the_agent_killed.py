"""codex is a launcher and the program it started; the launcher is killed, the program works on with its server."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    launcher = stage.run(stage.part("codex", """
        if ALIAS == "inner":
            here()
            use("codex", start("mcp-server-fake").ask)
        here()
        start("codex", "--as", "inner", wire=None).wait()
    """))
    stage.beats("codex")
    launcher.kill()
    return stage.truth(in_use=[stage.who("inner"), stage.who("mcp-server-fake")])
