"""The host is killed; a copy without the wire works on, and will give work to an idle one that has it, through a queue between the two."""

TRUTH = "in use"
TWIN = "orphans/fed_by_an_idle_copy"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        (queue, tasks), (results, done) = os.pipe(), os.pipe()
        def feed():
            os.write(tasks, b"x")
            if not select.select([results], [], [], TIMEOUT)[0]:
                raise TimeoutError("no result")
            os.read(results, 1)
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
            while os.read(queue, 1):
                server.ask()
                os.write(done, b"y")
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
