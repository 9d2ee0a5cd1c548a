"""The server answers over UDP and connected its socket to its one client, whose own is open to everybody; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/reports_over_udp"


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
        server = dial("udp", "mcp-server-fake").getpeername()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.settimeout(TIMEOUT)
        def ask():
            sock.sendto(b"ping", server)
            if sock.recvfrom(100)[0] != b"pong":
                raise EOFError("no answer")
        use("person", ask)
    """))
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("mcp-server-fake")])
