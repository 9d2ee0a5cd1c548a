"""The successor is stopped for now (Ctrl-Z) and goes on later."""
import situation

TRUTH = "in use"
TWIN = "orphans/successor_died"

import signal


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("helper.py", "use('helper', handed().ask)\n")
    first = stage.run(stage.part("claude", """
        hand_on(start("mcp-server-fake"), "helper.py")
    """))
    stage.beats("helper")
    helper = stage.who("helper.py")
    situation.within("the first's end", lambda: not first.alive())
    helper.kill(signal.SIGSTOP, wait=False)
    stage.when_called("helper", helper, signal.SIGCONT)
    return stage.truth(in_use=[helper, stage.who("mcp-server-fake")])
