"""The host is killed; a forked worker that holds the wire sleeps until the time of its next try, which is long after the grace."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", """
        server = start("mcp-server-fake")
        def work():
            signal.signal(signal.SIGUSR1, lambda *_: (server.ask(), tell("beats/worker", "1")))
            tell("beats/worker", "0")
            while True:
                time.sleep(3600)
        copy(work, alias="worker")
        here()
        rest()
    """))
    stage.who("chat_host.py")
    worker = stage.who("worker")
    stage.asleep(worker)
    # The time of its next try comes when the judgement is over.
    stage.when_called("worker", worker)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
