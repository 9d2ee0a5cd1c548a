"""The server answers over UDP and connected its socket to its one client; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", """
        sock = listen("udp")
        def attend():
            _, sender = sock.recvfrom(100)
            sock.connect(sender)
            sock.send(b"pong")
            while True:
                sock.recv(100)
                sock.send(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")

    person = stage.run(stage.part("person", """
        connection = dial("udp", "mcp-server-fake")
        use("person", lambda: ask_over(connection))
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("mcp-server-fake")])
