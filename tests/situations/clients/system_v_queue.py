"""A person sends jobs to a server through a message queue of System V; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/channel_hung_up"


SHARED = """
        key = os.stat(DIR).st_ino % 2**31
        queue = libc.msgget(key, 0o1666)
"""


def build(stage):
    stage.part("mcp-server-fake", SHARED + """
        def attend():
            buffer = ctypes.create_string_buffer(100)
            while libc.msgrcv(queue, buffer, 90, 0, 0) >= 0:
                tell("go/answer", "")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    person = stage.run(stage.part("person", SHARED + """
        def ask():
            libc.msgsnd(queue, ctypes.create_string_buffer(b"\\1" + b"\\0" * 20), 4, 0)
            wait_for("answer")
            libc.msgctl(queue, 0, None)
        on_call("person", ask)
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])
