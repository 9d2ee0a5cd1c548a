"""The host is killed; a forked worker that holds the wire waits for a program that it started, and then goes on."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    job = stage.part("job", """
        here()
        rest()
    """)
    person = stage.run(stage.part("person", """
        job = os.pidfd_open(present("job"))
        here()
        def work():
            signal.pidfd_send_signal(job, signal.SIGTERM)
            wait_for("answer")
        on_call("person", work)
    """))
    host = stage.run(stage.part("claude", f"""
        server = start("mcp-server-fake")
        def work():
            subprocess.call([{job!r}], stdin=subprocess.DEVNULL, close_fds=True)
            server.ask()
            tell("go/answer", "")
        copy(work, alias="worker")
        here()
        rest()
    """))
    stage.who("claude")
    stage.who("person")
    worker = stage.who("worker")
    stage.asleep(worker)
    stage.asleep(stage.who("job"))
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
