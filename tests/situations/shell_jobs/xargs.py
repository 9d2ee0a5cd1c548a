"""`.. | xargs -n 1 sh -c 'echo .. | mcp-server-x' > results &` works off a list; the agent is killed."""

TRUTH = "in use"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        line = f"seq 9 | xargs -n 1 sh -c 'echo $0 | {BIN}/mcp-server-batch | cat; true' > results"
        shell(f"({line}) 2> /dev/null &", start_new_session=False)
        here()
        rest()
    """))
    stage.who("claude")
    server = stage.who("mcp-server-batch")
    stage.grows("results")
    agent.kill()
    others = [p for name in ("xargs", "cat") for p in stage.find(name) if p.argv()[0] == name]
    return stage.truth(in_use=[server, *others])
