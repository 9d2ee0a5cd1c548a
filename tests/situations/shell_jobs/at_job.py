"""The agent queued a job; a double-forked shell in a session of its own runs a pipeline with a server, later; the agent is dead by then."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        job = f"while [ ! -e go/due ]; do sleep 0.1; done; echo {{}} | {BIN}/mcp-server-batch | cat > results; true"
        shell(f"(setsid sh -c '{job}' < /dev/null > /dev/null 2>&1 &)")
        here()
        rest()
    """))
    stage.who("claude")
    stage.find("sh")
    agent.kill()
    stage.go("due")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    return stage.truth(in_use=[server, *[p for p in stage.find("cat") if p.argv()[0] == "cat"]])
