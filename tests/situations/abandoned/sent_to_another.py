"""The agent sent its ends through a unix socket to a program that has nothing to do with it, and closed them."""

TRUTH = "in use"
TWIN = "abandoned/sent_and_lost"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    other = stage.run(stage.part("broker", """
        at = listen("unix")
        here()
        server = Server(*receive_fds(at.accept()[0], 2))
        use("broker", server.ask)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        send_fds(dial("unix", "broker"), server.w, server.r)
        server.let_go()
        here()
        rest()
    """))
    stage.beats("broker")
    return stage.truth(in_use=[agent, other, stage.who("mcp-server-fake")])
