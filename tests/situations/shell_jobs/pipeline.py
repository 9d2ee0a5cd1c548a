"""`nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &` works off a job; the agent is killed."""
import situation

TRUTH = "in use"
TWIN = "orphans/login_shell"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        shell(f"nohup sh -c 'echo {{}} | {BIN}/mcp-server-batch | sed -u s/x/y/ > results' > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[server, situation.Process(server.parent()), *stage.find("sed")[-1:]])
