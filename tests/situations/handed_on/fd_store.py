"""A store keeps the wires while the agent is restarted, and gives them to the next one."""
import situation

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    store = stage.run(stage.part("fd-store", """
        conn = listen("unix").accept()[0]
        server = Server(*receive_fds(conn, 2))
        conn.close()
        here()
        on_call("store", lambda: hand_on(server, "claude", "--as", "next", wait=True))
    """))
    agent = stage.run(stage.part("claude", """
        if ALIAS == "next":
            handed().ask()
            os._exit(0)
        server = start("mcp-server-fake")
        conn = dial("unix", "fd-store")
        send_fds(conn, server.w, server.r)
        conn.recv(1)
    """))
    stage.who("fd-store")
    stage.when_called("store", store)
    situation.within("the agent's end", lambda: not agent.alive())
    return stage.truth(in_use=[store, stage.who("mcp-server-fake")])
