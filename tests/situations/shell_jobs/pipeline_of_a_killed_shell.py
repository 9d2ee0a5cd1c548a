"""A pipeline in the background, whose shell is killed with the agent: server and reader of the results are left."""
import situation

TRUTH = "in use"
TWIN = "orphans/reader_gone"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        shell(f"nohup sh -c 'echo {{}} | {BIN}/mcp-server-batch | sed -u s/x/y/ > results; true' > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    sed = [p for p in stage.find("sed") if p.argv()[0] == "sed"]
    agent.kill()
    situation.Process(server.parent()).kill()
    return stage.truth(in_use=[server, *sed])
