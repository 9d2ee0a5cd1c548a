"""A home-made host and its server, which no rule knows, are idle."""

TRUTH = "in use"
TWIN = "protocol/home_made"


def build(stage):
    stage.server("server.py", "timer")
    host = stage.run(stage.part("chat_host.py", """
        server = session("server.py")
        here()
        on_call("host", server.ask)
    """))
    stage.when_called("host", stage.who("chat_host.py"))
    return stage.truth(in_use=[host, stage.who("server.py")])
