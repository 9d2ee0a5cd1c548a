"""A `tee` reads the server's output on behalf of a person's program; the agent is killed."""
import os

TRUTH = "in use"
TWIN = "orphans/reader_gone"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    os.mkfifo(f"{stage.dir}/copy")
    person = stage.run(stage.part("person", """
        copied = os.open(f"{DIR}/copy", os.O_RDONLY)
        use("person", lambda: os.read(copied, 1000) or 1 / 0)
    """))
    agent = stage.run(stage.part("claude", """
        server = start("mcp-server-batch")
        start("/usr/bin/tee", f"{DIR}/copy", wire=None, stdin=server.r)
        here()
        rest()
    """))
    stage.who("claude")
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[person, stage.who("mcp-server-batch"), *stage.find("tee")])
