"""`tail -f mcp-server.log | grep mcp-server-x > found &`: names of servers in arguments. The agent is killed."""

TRUTH = "in use"


def build(stage):
    agent = stage.run(stage.part("claude", """
        shell(f"tail -s 0.1 -f mcp-server.log 2> /dev/null | grep --line-buffered mcp-server-fake > found 2> /dev/null &")
        here()
        rest()
    """), cwd=stage.dir)
    stage.write("mcp-server.log", "mcp-server-fake\n")
    stage.who("claude")
    stage.run(stage.part("logger", "use('logger', lambda: open(f'{DIR}/mcp-server.log', 'a').write('mcp-server-fake\\n'))\n"))
    parts = [p for name in ("tail", "grep") for p in stage.find(name) if p.argv()[0] == name]
    stage.grows("found")
    agent.kill()
    return stage.truth(in_use=parts)
