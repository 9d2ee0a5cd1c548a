"""The host is killed; a forked worker that holds the wire waits for the next line from a pipe that a person writes to."""

TRUTH = "in use"
TWIN = "orphans/pool_workers_at_a_queue"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("chat_host.py", """
        server = start("mcp-server-fake")
        def work():
            while os.read(0, 100):
                server.ask()
                os.write(1, b"pong")
        copy(work, alias="worker")
        here()
        use("host", server.ask)
    """)
    person = stage.run(stage.part("person", """
        (far_r, w), (r, far_w) = os.pipe(), os.pipe()
        start("chat_host.py", wire=None, stdin=far_r, stdout=far_w)
        os.close(far_r)
        os.close(far_w)
        def ask():
            os.write(w, b"ping")
            if os.read(r, 100) != b"pong":
                raise EOFError("no answer")
        on_call("person", ask)
    """))
    host, worker = stage.who("chat_host.py"), stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
