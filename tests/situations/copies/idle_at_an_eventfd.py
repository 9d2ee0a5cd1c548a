"""The host is killed; a forked worker that holds the wire waits at an eventfd, by which a person outside gives it work."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    stage.part("person", """
        jobs = int(argument("--jobs"))
        here()
        def ask():
            os.eventfd_write(jobs, 1)
            wait_for("answer")
        on_call("person", ask)
    """)
    host = stage.run(stage.part("chat_host.py", """
        jobs = os.eventfd(0)
        server = start("mcp-server-fake")
        def work():
            while os.eventfd_read(jobs):
                server.ask()
                tell("go/answer", "")
        copy(work, alias="worker")
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.set_inheritable(jobs, True)
            os.closerange(3, jobs)
            os.closerange(jobs + 1, 64)
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            os.execv(f"{BIN}/person", ["person", "--jobs", str(jobs)])
        os.wait()
        present("person")
        here()
        use("host", server.ask)
    """))
    person, worker = stage.who("person"), stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
