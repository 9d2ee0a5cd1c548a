"""A git server's hook started a background job in a session of its own; the agent is killed, the server ends a moment later by itself."""
import situation

TRUTH = "in use"
TWIN = "orphans/waits_for_its_tool"


def build(stage):
    stage.part("job", "here()\nuse('job', lambda: print('step', flush=True))\n")
    stage.part("mcp-server-git", """
        shell(f"setsid {BIN}/job < /dev/null > {DIR}/job.log 2>&1 &")
        present("job")
        here()
        serve("exit")
    """)
    agent = stage.run(stage.part("claude", """
        start("mcp-server-git", wire="socket")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-git")
    agent.kill()
    stage.beats("job")
    situation.within("the server's end", lambda: not server.alive())
    return stage.truth(in_use=[stage.who("job")])
