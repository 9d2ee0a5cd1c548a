"""`mcp-server-x <<< '{}' > results &`: the input is a pipe whose writer is gone, the output a file."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        shell(f"nohup {BIN}/mcp-server-batch <<< '{{}}' > results 2> /dev/null &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[server])
