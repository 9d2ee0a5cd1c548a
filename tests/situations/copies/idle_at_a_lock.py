"""The host is killed; a forked worker that holds the wire waits for a file that a person has locked."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.write("lock")
    person = stage.run(stage.part("person", """
        lock = open(f"{DIR}/lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        here()
        def work():
            fcntl.flock(lock, fcntl.LOCK_UN)
            wait_for("answer")
        on_call("person", work)
    """))
    stage.who("person")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        def work():
            lock = open(f"{DIR}/lock", "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            server.ask()
            tell("go/answer", "")
        copy(work, alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    worker = stage.who("worker")
    stage.asleep(worker)
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
