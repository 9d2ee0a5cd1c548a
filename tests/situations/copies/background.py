"""An agent forks itself, the copy calls setsid without exec, the launcher dies by SIGHUP; the copy works on."""

TRUTH = "in use"
TWIN = "orphans/terminal_closed"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", start_new_session=True)
        copy(lambda: use("copy", server.ask), setsid=True, alias="copy")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("copy")
    agent.kill(signal.SIGHUP)
    return stage.truth(in_use=[stage.who("copy"), stage.who("mcp-server-fake")])
