"""A shell runs others on its wires before the server, as a start-up file does; the agent is killed, and the server stays."""

TRUTH = "orphan"
TWIN = "protocol/job_of_a_busy_shell"


def build(stage):
    stage.server("server.py", "timer")
    stage.part("claude", """
        line = f"mkdir -p {DIR}/cache; sleep 0.1; rm -rf {DIR}/cache; sleep 0.1; {BIN}/server.py; true"
        use("agent", session("/bin/bash", "-c", line, wire="socket").ask)
    """)
    agent = stage.run(f"{stage.dir}/bin/claude")
    stage.was_used("agent")
    agent.kill()
    return stage.truth(orphans=[stage.who("server.py")])
