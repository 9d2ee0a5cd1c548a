"""The host is killed; a forked worker that holds the wire waits on a connection to a gateway for its next request."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    gateway = stage.run(stage.part("broker", """
        caller = listen("tcp").accept()[0]
        caller.settimeout(TIMEOUT)
        on_call("broker", lambda: ask_over(caller))
    """))
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        def work():
            broker = dial("tcp", "broker")
            broker.settimeout(None)
            here("worker")
            while broker.recv(100):
                server.ask()
                broker.sendall(b"pong")
        copy(work)
        here()
        rest()
    """))
    stage.who("claude")
    worker = stage.who("worker")
    stage.when_called("broker", gateway)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
