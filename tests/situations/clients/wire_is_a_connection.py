"""A super-server (inetd, socat) starts a server right on the connection of its client; the super-server is killed."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    inetd = stage.run(stage.part("supersrv.py", """
        door = listen("tcp")
        call = door.accept()[0]
        start("mcp-server-fake", wire=None, stdin=call, stdout=call)
        call.close()
        here()
        rest()
    """))
    stage.run(stage.part("person", """
        connection = dial("tcp", "supersrv.py")
        wire = connection.fileno()
        server = Server(wire, wire)
        use("person", server.ask)
    """))
    stage.beats("person")
    inetd.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])
