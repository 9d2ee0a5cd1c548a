"""A living host closed the standard streams of its server and talks to it over an IPC channel on fd 3."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-fake", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        def attend():
            while channel.recv(100):
                channel.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        near, far = socket.socketpair()
        server = start("mcp-server-fake", "--ipc", str(far.fileno()), pass_fds=[far.fileno()])
        far.close()
        server.let_go()
        here()
        use("claude", lambda: ask_over(near))
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
