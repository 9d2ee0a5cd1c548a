"""A person sends jobs to a server through a POSIX message queue; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/channel_hung_up"


QUEUE = """
        librt = ctypes.CDLL("librt.so.1", use_errno=True)
        name = ("/" + os.path.basename(DIR)).encode()
        queue = librt.mq_open(name, 0o102, 0o600, None)
"""


def build(stage):
    stage.part("mcp-server-fake", QUEUE + """
        def attend():
            buffer = ctypes.create_string_buffer(8192)
            while librt.mq_receive(queue, buffer, 8192, None) >= 0:
                tell("go/answer", "")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    person = stage.run(stage.part("person", QUEUE + """
        def ask():
            librt.mq_send(queue, b"ping", 4, 0)
            wait_for("answer")
            librt.mq_unlink(name)
        on_call("person", ask)
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])
