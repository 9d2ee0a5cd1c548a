"""A person wakes a server at a semaphore in memory that both map; the agent is killed."""

TRUTH = "in use"
TWIN = "orphans/own_shared_memory"


SHARED = """
        file = os.open(f"{DIR}/go/memory", os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(file, 4096)
        memory = mmap.mmap(file, 4096)
        semaphore = ctypes.byref(ctypes.c_char.from_buffer(memory))
"""


def build(stage):
    stage.part("mcp-server-fake", SHARED + """
        libc.sem_init(semaphore, 1, 0)
        def attend():
            while libc.sem_wait(semaphore) == 0:
                tell("go/answer", "")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-fake")
    person = stage.run(stage.part("person", SHARED + """
        def ask():
            libc.sem_post(semaphore)
            wait_for("answer")
        on_call("person", ask)
    """))
    stage.when_called("person", person)
    agent.kill()
    return stage.truth(in_use=[stage.who("mcp-server-fake")])
