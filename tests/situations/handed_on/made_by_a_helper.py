"""A host starts its servers through a helper that makes the wires and sends their ends; the helper is killed, the host goes on."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("some_host.py", """
        near, far = socket.socketpair()
        start("zygote", "--to", str(far.fileno()), wire=None, pass_fds=[far.fileno()])
        far.close()
        server = Server(*receive_fds(near, 2))
        here()
        use("host", server.ask)
    """))
    stage.part("zygote", """
        sock = socket.socket(fileno=int(argument("--to")))
        server = start("mcp-server-fake")
        send_fds(sock, server.w, server.r)
        server.let_go()
        here()
        rest()
    """)
    zygote = stage.who("zygote")
    stage.beats("host")
    zygote.kill()
    return stage.truth(in_use=[host, stage.who("mcp-server-fake")])
