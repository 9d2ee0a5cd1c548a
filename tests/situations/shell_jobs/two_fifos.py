"""A client and a server joined by two FIFOs, both in the background of the Bash tool; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("client.py", "here()\nuse('client', Server(1, 0).ask)\n")
    agent = stage.run(stage.part("claude", """
        shell(f"mkfifo a b; nohup {BIN}/mcp-server-fake < a > b 2>/dev/null & nohup {BIN}/client.py > a < b 2>/dev/null &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("client")
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake"), stage.who("client.py")])
