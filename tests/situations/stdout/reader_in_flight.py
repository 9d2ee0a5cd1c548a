"""The read end of the results lies in a unix socket, sent by the agent, which was killed, not received yet."""

TRUTH = "in use"
TWIN = "orphans/flight_cancelled"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    user = stage.run(stage.part("collector", """
        conn = listen("unix").accept()[0]
        ends = []
        def read():
            if not ends:
                ends.extend(receive_fds(conn, 1))
            if not os.read(ends[0], 1000):
                raise EOFError
        on_call("collector", read)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        os.close(server.w)
        conn = dial("unix", "collector")
        send_fds(conn, server.r)
        here()
        rest()
    """))
    stage.who("claude")
    stage.when_called("collector", user)
    agent.kill()
    return stage.truth(in_use=[user, stage.who("mcp-server-batch")])
