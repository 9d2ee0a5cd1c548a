"""A known agent hands the wire over by SCM_RIGHTS to a program younger than the server, and ends with success."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    pool = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        here()
        conn = listen("unix").accept()[0]
        send_fds(conn, server.w)
        conn.recv(1)
    """))
    stage.who("claude")
    user = stage.run(stage.part("chat.py", """
        conn = dial("unix", "claude")
        wire, = receive_fds(conn, 1)
        conn.sendall(b"x")
        conn.close()
        use("chat", Server(wire, wire).ask)
    """))
    stage.beats("chat")
    situation.within("the pool's end", lambda: not pool.alive())
    return stage.truth(in_use=[user, stage.who("mcp-server-fake")])
