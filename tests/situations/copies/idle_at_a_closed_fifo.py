"""The host is killed; a forked worker that holds the wire waits in open(2) for whoever opens its FIFO next."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("chat_host.py", """
        os.mkfifo(f"{DIR}/requests")
        os.mkfifo(f"{DIR}/answers")
        server = start("mcp-server-fake")
        def work():
            while True:
                with open(f"{DIR}/requests") as fifo:
                    fifo.read()
                server.ask()
                with open(f"{DIR}/answers", "w") as fifo:
                    fifo.write("pong")
        copy(work, alias="worker")
        here()
        use("host", server.ask)
    """))
    person = stage.run(stage.part("person", """
        def ask():
            with open(f"{DIR}/requests", "w") as fifo:
                fifo.write("ping")
            with open(f"{DIR}/answers") as fifo:
                if fifo.read() != "pong":
                    raise EOFError
        on_call("person", ask)
    """))
    worker = stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
