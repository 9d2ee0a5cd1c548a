"""The server execs in place into an agent when its owner is dead and the grace runs."""

TRUTH = "in use"
TWIN = "orphans/execs_in_place"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("codex", """
        here()
        use("codex", start("mcp-server-fake").ask)
    """)
    stage.part("mcp-server-turncoat", """
        answer(os.read(0, 65536))
        signal.signal(signal.SIGUSR1, lambda *_: become("codex"))
        here()
        rest()
    """)
    agent = stage.agent("mcp-server-turncoat")
    turncoat = stage.who("mcp-server-turncoat")
    agent.kill()
    turncoat.kill(signal.SIGUSR1, wait=False)
    stage.beats("codex")
    return stage.truth(in_use=[stage.who("codex"), stage.who("mcp-server-fake")])
