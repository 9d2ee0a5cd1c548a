"""An agent starts its server by a double fork, so that init has it from the first moment, and is killed."""

TRUTH = "orphan"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        near_w, near_r, far_r, far_w = wires("pipe")
        def middle():
            subprocess.Popen([f"{BIN}/mcp-server-fake"], stdin=far_r, stdout=far_w)
        os.waitpid(copy(middle), 0)
        os.close(far_r)
        os.close(far_w)
        Server(near_w, near_r).ask()
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
