"""The server keeps its client's connection in an io_uring and no descriptor of it; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        listener = listen("tcp")
        def attend():
            caller = listener.accept()[0]
            listener.close()
            ring = Ring(caller.detach())
            while ring.read(100):
                ring.write(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")

    person = stage.run(stage.part("person", """
        connection = dial("tcp", "mcp-server-fake")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("mcp-server-fake")])
