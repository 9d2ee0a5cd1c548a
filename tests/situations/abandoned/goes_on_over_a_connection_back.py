"""A living host closed the standard streams and talks over a connection that the server made to it."""

TRUTH = "in use"
TWIN = "abandoned/let_go"


def build(stage):
    stage.part("mcp-server-fake", """
        channel = dial("unix", "claude")
        channel.settimeout(None)
        def attend():
            while channel.recv(100):
                channel.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        listener = listen("unix")
        server = start("mcp-server-fake")
        channel = listener.accept()[0]
        listener.close()
        server.let_go()
        here()
        use("claude", lambda: ask_over(channel))
    """))
    stage.beats("claude")
    return stage.truth(in_use=[agent, stage.who("mcp-server-fake")])
