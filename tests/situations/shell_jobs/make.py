"""`make &` in the Bash tool; a recipe pipes requests through a server; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.put("Makefile", "results:\n\techo {} | $(SERVER) | tee results > /dev/null; true\n", mode=0o644)
    agent = stage.run(stage.part("claude", """
        shell(f"nohup make -f {BIN}/Makefile SERVER={BIN}/mcp-server-batch > make.log 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    others = [p for name in ("make", "tee") for p in stage.find(name) if p.argv()[0] == name]
    return stage.truth(in_use=[server, *others])
