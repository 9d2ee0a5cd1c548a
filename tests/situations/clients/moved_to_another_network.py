"""The server listened, then moved to a network namespace of its own (a sandbox); its client is connected; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        listener = listen("tcp")
        present("person0")
        caller = listener.accept()[0]
        listener.close()
        own_network()
        def attend():
            while caller.recv(100):
                caller.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """))
    person = stage.run(stage.part("person", """
        connection = dial("tcp", "mcp-server-fake")
        here("person0")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    stage.who("claude")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("mcp-server-fake")])
