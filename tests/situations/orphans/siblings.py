"""Three servers of one killed agent hold each other's wires open."""

TRUTH = "orphan"
TWIN = "handed_on/successor_unknown"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        for n in range(3):
            near_w, near_r, far_r, far_w = wires("pipe")
            os.set_inheritable(near_w, True)
            os.set_inheritable(near_r, True)
            subprocess.Popen([f"{BIN}/mcp-server-fake", "--as", f"server{n}"], stdin=far_r, stdout=far_w, close_fds=False)
            os.close(far_r)
            os.close(far_w)
            Server(near_w, near_r).ask()
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    return stage.truth(orphans=[stage.who(f"server{n}") for n in range(3)])
