"""The host is killed; a forked worker that holds the wire is idle, but listens for requests of its own."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        def work():
            listener = listen("unix", "worker")
            here("worker")
            with listener.accept()[0] as call:
                while call.recv(100):
                    server.ask()
                    call.sendall(b"pong")
        copy(work)
        here()
        rest()
    """))
    stage.who("claude")
    worker = stage.who("worker")
    person = stage.run(stage.part("person", "on_call('person', lambda: call('unix', 'worker'))\n"))
    host.kill()
    stage.when_called("person", person)
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
