"""The agent started its server through `bash -c 'cd .. && server; ..'`; it is killed, shell and server stay."""
import situation

TRUTH = "orphan"
TWIN = "shell_jobs/pipeline"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    agent = stage.run(stage.part("claude", """
        start("/bin/bash", "-c", f"cd / && {BIN}/mcp-server-fake; exit $?")
        here()
        rest()
    """))
    stage.who("claude")
    agent.kill()
    server = stage.who("mcp-server-fake")
    return stage.truth(orphans=[situation.Process(server.parent()), server])
