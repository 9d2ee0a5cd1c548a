"""A preforking web application: the master is killed, its workers go on serving people through the shared server."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("webapp.py", """
        import fcntl
        server, listener = start("mcp-server-fake", wire="socket"), listen("tcp")
        def work():
            lock = open(f"{DIR}/lock", "w")
            while True:
                with listener.accept()[0] as call:
                    call.recv(100)
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    server.ask()
                    fcntl.flock(lock, fcntl.LOCK_UN)
                    call.sendall(b"pong")
        for n in range(2):
            copy(work, alias=f"worker{n}")
        here()
        rest()
    """))
    stage.who("webapp.py")
    stage.run(stage.part("person", "use('person', lambda: call('tcp', 'webapp.py'))\n"))
    stage.beats("person")
    workers = [stage.who(f"worker{n}") for n in range(2)]
    host.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake"), *workers])
