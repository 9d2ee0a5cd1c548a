"""A server on FIFOs with names waits for its next host; the last one was killed, and nobody has them open just now."""

TRUTH = "in use"
TWIN = "orphans/busy_timer"


def build(stage):
    stage.part("mcp-server-lasting", """
        import time
        here()
        while True:
            asked = os.read(0, 65536)
            if asked:
                answer(asked)
            else:
                time.sleep(0.2)
    """)
    agent = stage.run(stage.part("claude", """
        for name in ("in", "out"):
            os.mkfifo(f"{DIR}/{name}")
        far_r, far_w = os.open(f"{DIR}/in", os.O_RDONLY | os.O_NONBLOCK), os.open(f"{DIR}/out", os.O_RDWR)
        os.set_blocking(far_r, True)
        w, r = os.open(f"{DIR}/in", os.O_WRONLY), os.open(f"{DIR}/out", os.O_RDONLY)
        start("mcp-server-lasting", wire=None, stdin=far_r, stdout=far_w)
        use("claude", Server(w, r).ask)
    """))
    stage.was_used("claude")
    next_host = stage.run(stage.part("codex", """
        def talk():
            w, r = os.open(f"{DIR}/in", os.O_WRONLY), os.open(f"{DIR}/out", os.O_RDONLY)
            Server(w, r).ask()
        on_call("codex", talk)
    """))
    stage.when_called("codex", next_host)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-lasting"), next_host])
