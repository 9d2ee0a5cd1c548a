"""The agent sent its ends through a unix socket and closed them; who shall have them takes them later."""

TRUTH = "in use"
TWIN = "abandoned/sent_and_lost"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    other = stage.run(stage.part("broker", """
        at = listen("unix")
        call = at.accept()[0]
        here()
        server = []
        def ask():
            if not server:
                server.append(Server(*receive_fds(call, 2)))
            server[0].ask()
        on_call("broker", ask)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        near = dial("unix", "broker")
        send_fds(near, server.w, server.r)
        server.let_go()
        here()
        rest()
    """))
    stage.who("claude")
    stage.when_called("broker", stage.who("broker"))
    return stage.truth(in_use=[agent, other, stage.who("mcp-server-fake")])
