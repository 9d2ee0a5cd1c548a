"""The host is killed; a forked worker that holds the wire waits for the next line that a person types at its terminal."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


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
    stage.part("login", """
        os.setsid()
        fcntl.ioctl(0, 0x540E, 0)
        start("chat_host.py", wire=None, stdin=0, stdout=1)
        rest()
    """)
    person = stage.run(stage.part("person", """
        import pty, tty
        master, slave = pty.openpty()
        tty.setraw(slave)
        start("login", wire=None, stdin=slave, stdout=slave)
        def ask():
            os.write(master, b"ping\\n")
            if b"pong" not in os.read(master, 100):
                raise EOFError("no answer")
        on_call("person", ask)
    """))
    host, worker = stage.who("chat_host.py"), stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
