"""`find .. -exec sh -c 'mcp-server-x < FILE | sort' \\; &`: input is a file, the result goes through a pipe."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    stage.write("list.json", "{}\n")
    agent = stage.run(stage.part("claude", """
        line = f"{BIN}/mcp-server-batch < $0 | cat > results; true"
        shell(f"nohup find . -name list.json -exec sh -c '{line}' {{}} \\\\; > /dev/null 2>&1 &")
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    others = [p for name in ("find", "cat") for p in stage.find(name) if p.argv()[0] == name]
    return stage.truth(in_use=[server, *others])
