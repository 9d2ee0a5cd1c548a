"""Who commands a server that waits where no descriptor shows it."""
import os
from textwrap import dedent
from situation import scene

DONE = """
        def done():
            for _ in range(1000):
                if os.path.exists(f"{DIR}/go/done"):
                    return os.unlink(f"{DIR}/go/done")
                time.sleep(0.02)
            raise EOFError("not done")
"""


def commanded(stage, server, person):
    """The server does `server` in the background; a person does `person` now and then, the first time before the agent is killed."""
    stage.part("mcp-server-player", dedent(server) + "in_background(obey)\nserve()\n")
    agent = stage.agent("mcp-server-player")
    caller = stage.run(stage.part("person", dedent(DONE + person) + "ask()\nhere()\non_call('person', ask)\n"))
    stage.when_called("person", stage.who("person"))
    stage.asleep(stage.who("mcp-server-player"))
    return stage.killed(agent, in_use=["mcp-server-player", caller])


@scene("in use", twin="orphans/blocked_read")
def control_fifo_in_a_loop(stage):
    """A person commands the server by `echo play > FIFO` now and then: it opens the FIFO anew for each command, and waits there; the agent is killed."""
    os.mkfifo(f"{stage.dir}/commands")
    return commanded(stage, """
        def obey():
            while True:
                with open(f"{DIR}/commands") as commands:
                    for line in commands:
                        tell("go/done", "")
    """, """
        def ask():
            with open(f"{DIR}/commands", "w") as commands:
                commands.write("play\\n")
            done()
    """)


@scene("in use", twin="orphans/blocked_read")
def control_fifo_made_anew(stage):
    """A person commands the server by `echo play > FIFO` now and then: it makes the FIFO anew for each command, and waits there; the agent is killed."""
    return commanded(stage, """
        def obey():
            while True:
                os.mkfifo(f"{DIR}/new")
                os.rename(f"{DIR}/new", f"{DIR}/commands")
                with open(f"{DIR}/commands") as commands:
                    for line in commands:
                        tell("go/done", "")
    """, """
        def ask():
            while not os.path.exists(f"{DIR}/commands"):
                time.sleep(0.02)
            with open(f"{DIR}/commands", "w") as commands:
                commands.write("play\\n")
            done()
    """)

@scene("in use", twin="orphans/blocked_read")
def offered_fifo(stage):
    """Whoever opens a FIFO gets a fresh text from the server, which waits there for the next one; the agent is killed."""
    os.mkfifo(f"{stage.dir}/quote")
    return commanded(stage, """
        def obey():
            while True:
                with open(f"{DIR}/quote", "w") as quote:
                    quote.write("wise")
                tell("go/done", "")
                time.sleep(0.05)
    """, """
        def ask():
            with open(os.open(f"{DIR}/quote", os.O_RDONLY | os.O_NONBLOCK), "rb") as quote:
                select.select([quote], [], [], TIMEOUT)
                assert b"wise" in quote.read()
            done()
    """)

MEMORY = """
        file = os.open(f"{DIR}/memory", os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(file, 4096)
        memory = mmap.mmap(file, 4096)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
"""

@scene("in use", twin="orphans/own_shared_memory")
def places_in_shared_memory(stage):
    """A person wakes a server that waits at several places in memory at once (futex_waitv(2)); the agent is killed."""
    return commanded(stage, MEMORY + """
        def obey():
            seen = 0
            while True:
                places = ctypes.create_string_buffer(struct.pack("QQII", seen, address, 2, 0))
                libc.syscall(449, places, 1, 0, None, 0)
                seen, = struct.unpack_from("I", memory)
                tell("go/done", "")
    """, MEMORY + """
        def ask():
            struct.pack_into("I", memory, 0, struct.unpack_from("I", memory)[0] + 1)
            number = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
            libc.syscall(number, ctypes.c_void_p(address), 1, 1, None, None, 0)
            done()
    """)

@scene("in use", twin="orphans/terminal_closed")
def types_at_its_terminal(stage):
    """A person types commands for the server at the terminal in which the agent was started, and reads what it did there; the agent is killed."""
    stage.part("mcp-server-console", """
        def obey():
            with open("/dev/tty", "r+b", buffering=0) as tty:
                while True:
                    tty.write(b"did " + tty.readline())
        in_background(obey)
        serve()
    """)
    stage.part("claude", 'start("mcp-server-console")\nhere()\nrest()\n')
    stage.uses("person", """
        import pty
        pid, master = pty.fork()
        if pid == 0:
            os.execv("/bin/sh", ["sh", "-c", f"{BIN}/claude; sleep 7200; :"])
        present("claude")
        def ask():
            os.write(master, b"work\\n")
            said = b""
            while b"did work" not in said:
                assert select.select([master], [], [], TIMEOUT)[0], said
                said += os.read(master, 1000)
        use("person", ask)
    """)
    return stage.killed(stage.who("claude"), in_use=["mcp-server-console"])
