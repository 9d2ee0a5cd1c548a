"""The agent made a third channel (an IPC socket pair on fd 3) and handed it on; the agent is killed, the channel is in use."""

TRUTH = "in use"
TWIN = "orphans/channel_hung_up"


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
        start("mcp-server-fake", "--ipc", str(far.fileno()), pass_fds=[far.fileno()])
        far.close()
        start("worker", "--ipc", str(near.fileno()), wire=None, pass_fds=[near.fileno()])
        present("worker")
        here()
        rest()
    """))
    stage.part("worker", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        here()
        use("worker", lambda: ask_over(channel))
    """)
    stage.who("claude")
    stage.beats("worker")
    agent.kill()
    return stage.truth(in_use=[stage.who("worker"), stage.who("mcp-server-fake")])
