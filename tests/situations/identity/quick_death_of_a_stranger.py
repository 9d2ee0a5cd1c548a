"""An agent dies within a millisecond after its server's exec; that server's wire is used by the agent above it, which made it."""

TRUTH = "in use"
TWIN = "orphans/quick_death_below_another"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("claude", """
        w = list(map(int, argument("--far").split(",")))
        subprocess.Popen([f"{BIN}/mcp-server-fake"], stdin=w[0], stdout=w[1])
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    outer = stage.run(stage.part("codex", """
        near_w, near_r, far_r, far_w = wires("pipe")
        start("claude", "--far", f"{far_r},{far_w}", wire=None, pass_fds=[far_r, far_w]).wait()
        os.close(far_r)
        os.close(far_w)
        use("codex", Server(near_w, near_r).ask)
    """))
    stage.beats("codex")
    return stage.truth(in_use=[outer, stage.who("mcp-server-fake")])
