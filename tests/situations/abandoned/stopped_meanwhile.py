"""The agent closed the input and waits for results; a person stopped the server for now, and somebody killed the launcher."""
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
    batch = stage.who("mcp-server-batch")
    batch.kill(situation.signal.SIGSTOP, wait=False)
    stage.when_called("claude", batch, situation.signal.SIGCONT)
    with open(f"{stage.dir}/go/launcher") as f:
        situation.Process(f.read()).kill()
    return stage.truth(in_use=[agent, batch])
