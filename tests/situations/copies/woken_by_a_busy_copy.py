"""The host is killed; a copy without the wire works on, and will wake an idle one that has it, through memory that the two share."""

TRUTH = "in use"
TWIN = "orphans/pool_workers_at_a_semaphore"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        import multiprocessing
        tasks, done = (multiprocessing.get_context("fork").Semaphore(0) for _ in range(2))
        def feed():
            tasks.release()
            if not done.acquire(timeout=TIMEOUT):
                raise TimeoutError("no result")
        def front():
            called = []
            signal.signal(signal.SIGUSR1, lambda *_: called.append(True))
            tell("beats/front", "0")
            while not called:
                sum(range(20000))
                time.sleep(0.05)
            use("front", feed)
        copy(front, alias="front")
        server = start("mcp-server-fake")
        def work():
            while tasks.acquire():
                server.ask()
                done.release()
        copy(work, alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    front, worker = stage.who("front"), stage.who("worker")
    stage.asleep(worker)
    stage.when_called("front", front)
    host.kill()
    return stage.truth(in_use=[front, worker, stage.who("mcp-server-fake")])
