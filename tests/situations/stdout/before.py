"""Before the daemon came: `cat requests | server | sed > results &`, adopted by init, at work."""

TRUTH = "in use"
WHEN = "before"
TWIN = "orphans/before"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        shell(f"echo {{}} | {BIN}/mcp-server-batch 2> /dev/null | sed -u s/x/y/ > results 2> /dev/null &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    stage.adopted(server)
    return stage.truth(in_use=[server, *[p for p in stage.find("sed") if p.argv()[0] == "sed"]])
