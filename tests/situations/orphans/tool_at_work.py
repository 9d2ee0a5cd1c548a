"""A server waits for a migration that takes its time; the agent is killed: the migration comes to its end, then the server ends."""
import os

TRUTH = "orphan"
TWIN = "orphans/tool_at_work_for_ever"


def build(stage):
    stage.part("migrate", """
        here()
        for step in range(40):
            open(f"{DIR}/migration", "a").write("row\\n")
            time.sleep(0.25)
        tell("migrated", "whole")
    """)
    stage.part("mcp-server-shell", """
        here()
        answer(os.read(0, 65536))
        subprocess.run([f"{BIN}/migrate"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        serve()
    """)
    agent = stage.agent("mcp-server-shell")
    migration = stage.who("migrate")
    agent.kill()

    stage.checks.append(lambda: os.path.exists(f"{stage.dir}/migrated"))
    return stage.truth(orphans=[stage.who("mcp-server-shell")], may_end=[migration])
