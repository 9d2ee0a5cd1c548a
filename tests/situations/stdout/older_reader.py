"""The results are read by a collector that is older than the agent and was sent the read end."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    collector = stage.run(stage.part("collector", """
        conn = listen("unix").accept()[0]
        r, = receive_fds(conn, 1)
        conn.close()
        use("collector", lambda: os.read(r, 1000) or 1 / 0)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        send_fds(dial("unix", "collector"), server.r)
        os.close(server.w)
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("collector")
    agent.kill()
    return stage.truth(in_use=[collector, stage.who("mcp-server-batch")])
