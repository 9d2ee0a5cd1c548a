"""The host is killed; a forked worker that holds the wire is stopped for now, as by a debugger, and goes on later."""
import situation

TRUTH = "in use"
TWIN = "handed_on/stopped_successor"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        copy(lambda: use("worker", server.ask), alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    worker = stage.who("worker")
    stage.beats("worker")
    worker.kill(situation.signal.SIGSTOP, wait=False)
    situation.within("the worker stops", lambda: open(f"/proc/{worker.pid}/stat").read().rpartition(")")[2].split()[0] == "T")
    stage.when_called("worker", worker, situation.signal.SIGCONT)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
