"""The agent closed the input after the last request; somebody else kills the launcher; the results are still read."""
import situation

TRUTH = "in use"
TWIN = "abandoned/launcher_killed"


def build(stage):
    stage.part("mcp-server-batch", "work_off()\n")
    agent = stage.run(stage.part("claude", """
        server = start("/bin/sh", "-c", f"{BIN}/mcp-server-batch; true")
        os.close(server.w)
        tell("go/launcher", str(server.pid))
        here()
        use("claude", lambda: os.read(server.r, 1000) or 1 / 0)
    """))
    stage.beats("claude")
    with open(f"{stage.dir}/go/launcher") as f:
        situation.Process(f.read()).kill()
    return stage.truth(in_use=[agent, stage.who("mcp-server-batch")])
