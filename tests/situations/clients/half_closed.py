"""A client has sent its request and closed its writing side, and waits for the answer; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/silent_listener"


def build(stage):
    stage.part("mcp-server-web", """
        def work():
            caller = listen("tcp").accept()[0]
            while caller.recv(100):
                pass
            here()
            signal.signal(signal.SIGUSR1, lambda *_: caller.sendall(b"pong"))
        answer(os.read(0, 65536))
        work()
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-web")
        here("claude")
        rest()
    """))
    stage.who("claude")
    person = stage.run(stage.part("person", """
        tell("beats/person", "0")
        connection = dial("tcp", "mcp-server-web")
        connection.settimeout(None)
        connection.sendall(b"ping")
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(100) == b"pong":
            use("person", lambda: None)
    """))
    server = stage.who("mcp-server-web")
    stage.when_called("person", server)
    agent.kill()
    return stage.truth(in_use=[server, person])
