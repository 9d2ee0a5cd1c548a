"""`timeout 600 sh -c 'cat requests - | server' | tee` with a person's FIFO for input; the agent is killed."""
import os

TRUTH = "in use"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    os.mkfifo(f"{stage.dir}/asked")
    agent = stage.run(stage.part("claude", """
        shell(f"timeout 600 sh -c 'cat asked | {BIN}/mcp-server-fake; true' 2> /dev/null | tee results > /dev/null &")
        here()
        rest()
    """))
    stage.who("claude")
    stage.run(stage.part("person", """
        asked = os.open(f"{DIR}/asked", os.O_WRONLY)
        use("person", lambda: os.write(asked, b'{"id":1}\\n'))
    """))
    server = stage.who("mcp-server-fake")
    stage.grows("results")
    agent.kill()
    others = [p for name in ("cat", "tee") for p in stage.find(name) if p.argv()[0] == name]
    return stage.truth(in_use=[server, *others])
