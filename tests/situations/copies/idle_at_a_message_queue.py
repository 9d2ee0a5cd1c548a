"""The host is killed; a forked worker that holds the wire waits at a POSIX message queue."""

TRUTH = "in use"
TWIN = "orphans/pool_workers"


def build(stage):
    stage.server("mcp-server-fake", "timer")
    MQ = """
        librt = ctypes.CDLL("librt.so.1", use_errno=True)
        name = ("/" + os.path.basename(DIR)).encode()
        queue = librt.mq_open(name, 0o102, 0o600, None)
    """
    host = stage.run(stage.part("chat_host.py", MQ + """
        server = start("mcp-server-fake")
        def work():
            librt.mq_unlink(name) if False else None
            buffer = ctypes.create_string_buffer(8192)
            while librt.mq_receive(queue, buffer, 8192, None) >= 0:
                server.ask()
                tell("go/answer", "")
        copy(work, alias="worker")
        here()
        use("host", server.ask)
    """))
    person = stage.run(stage.part("person", MQ + """
        def ask():
            librt.mq_send(queue, b"ping", 4, 0)
            wait_for("answer")
            librt.mq_unlink(name)
        on_call("person", ask)
    """))
    worker = stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    host.kill()
    return stage.truth(in_use=[worker, stage.who("mcp-server-fake")])
