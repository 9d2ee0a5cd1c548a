"""An agent's copy in a session of its own, without exec, starts one more server when the launcher has been killed."""

TRUTH = "in use"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", "--as", "first")
        def go_on():
            wait_for("launcher is dead")
            more = start("mcp-server-fake", "--as", "second")
            use("copy", lambda: (server.ask(), more.ask()))
        copy(go_on, setsid=True, alias="copy")
        here()
        rest()
    """))
    stage.who("claude")
    stage.who("copy")
    agent.kill(signal.SIGKILL)
    stage.go("launcher is dead")
    stage.beats("copy")
    return stage.truth(in_use=[stage.who("copy"), stage.who("first"), stage.who("second")])
