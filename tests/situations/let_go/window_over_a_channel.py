"""A server opened a window for a person, in a session of its own, and answers it over a pair of sockets; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/tied_browser"


def build(stage):
    stage.part("mcp-server-fake", """
        near, far = socket.socketpair()
        free = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        subprocess.Popen([f"{BIN}/window", "--ipc", str(far.fileno())], pass_fds=[far.fileno()], **free)
        far.close()
        present("window")
        def attend():
            while near.recv(100):
                near.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("window", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        here()
        use("window", lambda: ask_over(channel))
    """)
    agent = stage.agent("mcp-server-fake")
    stage.beats("window")
    agent.kill()
    return stage.truth(in_use=[stage.who("window"), stage.who("mcp-server-fake")])
