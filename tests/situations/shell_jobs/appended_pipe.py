"""`tail -f requests | mcp-server-x > results &`: input through a pipe from tail, output to a file."""

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.write("requests", '{"id":0}\n')
    agent = stage.run(stage.part("claude", """
        shell(f"tail -s 0.1 -f requests 2> /dev/null | {BIN}/mcp-server-fake > results 2> /dev/null &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", "use('person', lambda: open(f'{DIR}/requests', 'a').write('{\"id\":1}\\n'))\n"))
    server = stage.who("mcp-server-fake")
    stage.grows("results")
    agent.kill()
    return stage.truth(in_use=[server, *[p for p in stage.find("tail") if p.argv()[0] == "tail"]])
