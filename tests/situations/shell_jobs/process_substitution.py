"""`nohup bash -c 'server < <(tail -f requests) > >(sed .. > results)' &`; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-fake", "serve('timer')\n")
    stage.write("requests", '{"id":0}\n')
    agent = stage.run(stage.part("claude", """
        line = f"{BIN}/mcp-server-fake < <(tail -s 0.1 -f requests) > >(sed -u s/x/y/ > results)"
        shell(f"nohup bash -c '{line}' > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", "use('person', lambda: open(f'{DIR}/requests', 'a').write('{\"id\":1}\\n'))\n"))
    server = stage.who("mcp-server-fake")
    stage.grows("results")
    agent.kill()
    parts = [p for name in ("tail", "sed") for p in stage.find(name) if p.argv()[0] == name]
    return stage.truth(in_use=[server, *parts])
