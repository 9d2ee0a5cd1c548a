"""The agent is killed; its server, which no rule knows, stays."""

TRUTH = "orphan"
TWIN = "protocol/handed_on"


def build(stage):
    stage.server("main.py", "timer")
    agent = stage.run(stage.part("claude", "use('agent', session('/usr/bin/python3', '-ISB', f'{BIN}/main.py', wire='socket').ask)\n"))
    stage.was_used("agent")
    agent.kill()
    return stage.truth(orphans=[stage.who("main.py")])
