"""The agent started tmux; in it a person runs a server in a pipeline; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.part("tmux", """
        def daemon():
            os.setsid()
            here()
            shell(f"echo {{}} | {BIN}/mcp-server-batch | cat > results")
        copy(daemon)
    """)
    agent = stage.run(stage.part("claude", """
        shell(f"{BIN}/tmux new -d")
        here()
        rest()
    """))
    stage.who("claude")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[stage.who("tmux"), stage.who("mcp-server-batch")])
