"""An agent started the server on FIFOs with names; a child of another agent, which lives, opened them and talks."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        for name in ("in", "out"):
            os.mkfifo(f"{DIR}/{name}")
        start("/bin/sh", "-c", f"exec {BIN}/mcp-server-fake < {DIR}/in > {DIR}/out", wire=None)
        here()
        rest()
    """))
    stage.who("claude")
    stage.part("talker.py", """
        here()
        w, r = os.open(f"{DIR}/in", os.O_WRONLY), os.open(f"{DIR}/out", os.O_RDONLY)
        use("talker", Server(w, r).ask)
    """)
    other = stage.run(stage.part("codex", """
        start("talker.py", wire=None)
        rest()
    """))
    stage.beats("talker")
    agent.kill()
    return stage.truth(in_use=[other, stage.who("talker.py"), stage.who("mcp-server-fake")])
