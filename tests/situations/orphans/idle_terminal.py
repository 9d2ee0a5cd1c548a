"""A leaking server had opened a terminal with a shell that waits for commands; the agent is killed."""

TRUTH = "orphan"
TWIN = "let_go/in_a_terminal"


def build(stage):
    stage.part("mcp-server-terminal", """
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        serve()
    """)
    agent = stage.agent("mcp-server-terminal")
    agent.kill()
    return stage.truth(orphans=[stage.who("mcp-server-terminal")])
