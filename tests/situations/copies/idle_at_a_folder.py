"""The host is killed; a forked worker that holds the wire waits for files that a person puts into a folder (inotify)."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    host = stage.run(stage.part("claude", """
        server = start("mcp-server-fake")
        os.makedirs(f"{DIR}/inbox")
        def work():
            inbox = checked(libc.inotify_init1(0), "inotify")
            checked(libc.inotify_add_watch(inbox, f"{DIR}/inbox".encode(), 0x100), "watch")
            here("worker")
            while select.select([inbox], [], [])[0] and os.read(inbox, 4096):
                server.ask()
                tell("go/answer", "")
        copy(work)
        here()
        rest()
    """))
    stage.who("claude")
    person = stage.run(stage.part("person", """
        def ask():
            open(f"{DIR}/inbox/task", "w").close()
            wait_for("answer")
        on_call("person", ask)
    """))
    worker = stage.who("worker")
    stage.asleep(worker)
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
