"""The host is killed; a forked worker that holds the wire computes and has not used it yet."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", """
        server = start("mcp-server-fake")
        def compute():
            done = []
            signal.signal(signal.SIGUSR1, lambda *_: done.append(True))
            tell("beats/worker", "0")
            while not done:
                sum(range(20000))
                time.sleep(0.05)
            server.ask()
            use("worker", server.ask)
        copy(compute, alias="worker")
        use("host", server.ask)
    """))
    stage.was_used("host")
    worker = stage.who("worker")
    stage.when_called("worker", worker)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
