"""A pool makes servers and hands their wires over by SCM_RIGHTS, then it dies."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    user = stage.run(stage.part("chat.py", """
        here()
        conn = listen("unix").accept()[0]
        server = Server(*receive_fds(conn, 2))
        conn.close()
        use("chat", server.ask)
    """))
    pool = stage.run(stage.part("pool.py", """
        server = start("mcp-server-fake")
        conn = dial("unix", "chat.py")
        send_fds(conn, server.w, server.r)
        here()
        rest()
    """))
    stage.who("pool.py")
    stage.beats("chat")
    pool.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])
