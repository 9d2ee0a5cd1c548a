"""The host handed the wires of a server that no rule knows to another program before it was killed."""

TRUTH = "in use"
TWIN = "protocol/home_made"


def build(stage):
    stage.server("server.py", "timer")
    stage.part("successor", "use('successor', handed().ask)\n")
    host = stage.run(stage.part("chat_host.py", """
        hand_on(session("server.py"), "successor")
        here()
        rest()
    """))
    stage.who("chat_host.py")
    host.kill()
    stage.beats("successor")
    return stage.truth(in_use=[stage.who("successor"), stage.who("server.py")])
