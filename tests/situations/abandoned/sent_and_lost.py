"""The agent sent its ends through a unix socket to a program that ended, and closed its own."""

TRUTH = "orphan"
TWIN = "abandoned/sent_to_another"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    other = stage.run(stage.part("broker", """
        at = listen("unix")
        here()
        server = Server(*receive_fds(at.accept()[0], 2))
        use("broker", server.ask)
    """))
    stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        with dial("unix", "broker") as call:
            send_fds(call, server.w, server.r)
        server.let_go()
        here()
        rest()
    """))
    stage.was_used("broker", 2)
    other.kill()
    return stage.truth(orphans=[stage.who("mcp-server-fake")])
