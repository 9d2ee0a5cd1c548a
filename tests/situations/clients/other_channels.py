import os
from textwrap import dedent, indent
from situation import scene

QUEUE = """
        librt = ctypes.CDLL("librt.so.1", use_errno=True)
        name = ("/" + os.path.basename(DIR)).encode()
        queue = librt.mq_open(name, 0o102, 0o600, None)
"""


SHARED = """
        file = os.open(f"{DIR}/go/memory", os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(file, 4096)
        memory = mmap.mmap(file, 4096)
        semaphore = ctypes.byref(ctypes.c_char.from_buffer(memory))
"""


SYSTEM_V = """
        key = os.stat(DIR).st_ino % 2**31
        queue = libc.msgget(key, 0o1666)
"""

@scene("in use")
def control_fifo(stage):
    """A person commands the server through a FIFO that is neither its stdin nor its stdout; the agent is killed."""
    os.mkfifo(f"{stage.dir}/commands")
    stage.part("mcp-server-player", """
        def obey():
            done, commands = open(f"{DIR}/done", "a"), os.open(f"{DIR}/commands", os.O_RDONLY)
            while os.read(commands, 100):
                print("done", file=done, flush=True)
        in_background(obey)
        serve()
    """)
    agent = stage.agent("mcp-server-player")
    person = stage.uses("person", """
        commands = os.open(f"{DIR}/commands", os.O_WRONLY)
        here()
        use("person", lambda: os.write(commands, b"play\\n"))
    """)
    stage.grows("done")
    return stage.killed(agent, in_use=["mcp-server-player", person])

@scene("in use")
def control_fifo_now_and_then(stage):
    """A person commands the server by `echo play > FIFO` now and then, and nobody has the FIFO open meanwhile; the agent is killed."""
    os.mkfifo(f"{stage.dir}/commands", 0o666)
    stage.part("mcp-server-player", """
        commands = os.open(f"{DIR}/commands", os.O_RDWR)
        def obey():
            while os.read(commands, 100):
                tell("go/done", "")
        in_background(obey)
        serve()
    """)
    agent = stage.agent("mcp-server-player")
    person = stage.run(stage.part("person", """
        def ask():
            if os.path.exists(f"{DIR}/go/done"):
                os.unlink(f"{DIR}/go/done")
            with open(f"{DIR}/commands", "w") as commands:
                commands.write("play\\n")
            for _ in range(1000):
                if os.path.exists(f"{DIR}/go/done"):
                    return
                time.sleep(0.02)
            raise EOFError("not done")
        here()
        ask()
        on_call("person", ask)
    """))
    stage.who("person")
    stage.when_called("person", person)
    return stage.killed(agent, in_use=["mcp-server-player"])

@scene("in use", twin="orphans/tracer_gone")
def debugged_thread(stage):
    """A debugger is attached to a thread of the server, not to its leader; the agent is killed."""
    stage.part("mcp-server-fake", """
        in_background(rest_in_a_thread)
        serve()
    """)
    agent = stage.agent()
    server = stage.who("mcp-server-fake")
    debugger = stage.rests("debugger", """
        pid = present("mcp-server-fake")
        trace(max(int(tid) for tid in os.listdir(f"/proc/{pid}/task")))
    """)
    return stage.killed(agent, in_use=[server, debugger])

@scene("in use", twin="orphans/tracer_gone")
def debugger(stage):
    """A debugger is attached to the server (PTRACE_SEIZE); the agent is killed."""
    agent = stage.agent()
    server = stage.who("mcp-server-fake")
    debugger = stage.rests("debugger", 'trace(present("mcp-server-fake"))')
    return stage.killed(agent, in_use=[server, debugger])

@scene("in use", twin="orphans/calls_a_database")
def debugger_that_is_dialled(stage):
    """A person steps through the server, which has dialled his debugger (`debugpy --connect`); the agent is killed."""
    debugger = stage.rests("debugger", 'in_background(answer_calls, listen("tcp"))')
    stage.part("mcp-server-fake", 'line = dial("tcp", "debugger")\nask_over(line)\nserve()\n')
    agent = stage.agent()
    return stage.killed(agent, in_use=["mcp-server-fake", debugger])

@scene("in use", twin="clients/debugger")
def debugs(stage):
    """A server is a debugger, attached to a person's program, which would end with it; the agent is killed."""
    stage.part("mcp-server-lldb", """
        # PTRACE_SEIZE with PTRACE_O_EXITKILL, as lldb-server attaches.
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        checked(libc.ptrace(PTRACE_SEIZE, present("program"), None, 0x100000), "ptrace")
        serve()
    """)
    stage.run(stage.part("program", "here()\nuse('program', lambda: None)\n"))
    program = stage.who("program")
    agent = stage.agent("mcp-server-lldb")
    stage.beats("program")
    return stage.killed(agent, in_use=[program, "mcp-server-lldb"])

@scene("in use", twin="orphans/event_counter")
def epoll_set(stage):
    """A program shares the server's epoll set, and adds to it what wakes the server; the agent is killed."""
    stage.part("mcp-server-fake", """
        waits = select.epoll.fromfd(int(argument("--set")))
        def attend():
            while waits.poll():
                tell("go/answer", "")
                time.sleep(0.05)
        in_background(attend)
        serve()
    """)
    stage.part("feeder", """
        waits = select.epoll.fromfd(int(argument("--set")))
        here()
        def feed():
            event = os.eventfd(1)
            waits.register(event, select.EPOLLIN)
            wait_for("answer")
            waits.unregister(event)
            os.close(event)
            os.unlink(f"{DIR}/go/answer")
        use("feeder", feed)
    """)
    agent = stage.rests("claude", """
        waits = select.epoll()
        words = ["--set", str(waits.fileno())]
        start("mcp-server-fake", *words, pass_fds=[waits.fileno()])
        start("feeder", *words, wire=None, pass_fds=[waits.fileno()])
        present("feeder")
    """)
    stage.beats("feeder")
    return stage.killed(agent, in_use=["feeder", "mcp-server-fake"])

@scene("in use", twin="orphans/event_counter")
def event_counter(stage):
    """A program wakes the server by an eventfd that both inherited, and is answered by another; the agent is killed."""
    stage.part("mcp-server-fake", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        def attend():
            while os.eventfd_read(jobs):
                os.eventfd_write(results, 1)
        in_background(attend)
        serve()
    """)
    stage.part("feeder", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        here()
        def feed():
            os.eventfd_write(jobs, 1)
            os.eventfd_read(results)
        use("feeder", feed)
    """)
    agent = stage.rests("claude", """
        jobs, results = os.eventfd(0), os.eventfd(0)
        words = ["--jobs", str(jobs), "--results", str(results)]
        start("mcp-server-fake", *words, pass_fds=[jobs, results])
        start("feeder", *words, wire=None, pass_fds=[jobs, results])
        present("feeder")
    """)
    stage.beats("feeder")
    return stage.killed(agent, in_use=["feeder", "mcp-server-fake"])

@scene("in use", twin="orphans/channel_hung_up")
def message_queue(stage):
    """A person sends jobs to a server through a POSIX message queue; the agent is killed."""
    stage.part("mcp-server-fake", QUEUE + """
        def attend():
            buffer = ctypes.create_string_buffer(8192)
            while librt.mq_receive(queue, buffer, 8192, None) >= 0:
                tell("go/answer", "")
        in_background(attend)
        serve()
    """)
    agent = stage.agent()
    person = stage.run(stage.part("person", QUEUE + """
        def ask():
            librt.mq_send(queue, b"ping", 4, 0)
            wait_for("answer")
            librt.mq_unlink(name)
        on_call("person", ask)
    """))
    stage.when_called("person", person)
    return stage.killed(agent, in_use=["mcp-server-fake"])

@scene("in use", twin="orphans/nameless_pipe_hung_up")
def nameless_pipe(stage):
    """A program feeds the server through a pipe without a name, on a descriptor beside the standard streams; the agent is killed."""
    stage.part("mcp-server-fake", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        def attend():
            while os.read(jobs, 100):
                os.write(results, b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("feeder", """
        jobs, results = int(argument("--jobs")), int(argument("--results"))
        here()
        def feed():
            os.write(jobs, b"ping")
            assert os.read(results, 100) == b"pong"
        use("feeder", feed)
    """)
    agent = stage.rests("claude", """
        jobs, results = os.pipe(), os.pipe()
        start("mcp-server-fake", "--jobs", str(jobs[0]), "--results", str(results[1]), pass_fds=[jobs[0], results[1]])
        start("feeder", "--jobs", str(jobs[1]), "--results", str(results[0]), wire=None, pass_fds=[jobs[1], results[0]])
        present("feeder")
    """)
    stage.beats("feeder")
    return stage.killed(agent, in_use=["feeder", "mcp-server-fake"])

@scene("in use", twin="orphans/idle_terminal")
def serial_line(stage):
    """A server offers a terminal as a serial line, and a program outside talks to it there, in no session of that terminal; the agent is killed."""
    stage.part("mcp-server-serial", """
        import tty
        master, line = os.openpty()
        tty.setraw(line)
        path = os.ttyname(line)
        tell("line", path)
        tell("go/line", "")
        def attend():
            while True:
                os.read(master, 100)
                os.write(master, b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-serial")
    person = stage.run(stage.part("person", """
        wait_for("line")
        line = os.open(open(DIR + "/line").read().strip(), os.O_RDWR | os.O_NOCTTY)
        def ask():
            os.write(line, b"ping")
            assert os.read(line, 100)
        ask()
        on_call("person", ask)
    """), start_new_session=True)
    stage.when_called("person", person)
    return stage.killed(agent, in_use=["mcp-server-serial"])

def woken_in_memory(stage, opened, mapped="", let_go=""):
    """A server waits at a semaphore in memory; a person does `opened` once, and `mapped` and `let_go` for each call."""
    stage.part("mcp-server-fake", opened + mapped + """
        libc.sem_init(semaphore, 1, 0)
        def attend():
            while libc.sem_wait(semaphore) == 0:
                tell("go/answer", "")
        in_background(attend)
        here()
        serve()
    """)
    agent = stage.agent()
    person = stage.run(stage.part("person", 'present("mcp-server-fake")\n' + dedent(opened) + f"""
def ask():
{indent(dedent(mapped), "    ")}
    libc.sem_post(semaphore)
    wait_for("answer")
{indent(dedent(let_go), "    ")}
on_call("person", ask)
"""))
    stage.when_called("person", person)
    return stage.killed(agent, in_use=["mcp-server-fake"])

@scene("in use", twin="orphans/own_shared_memory")
def shared_memory(stage):
    """A person wakes a server at a semaphore in memory that both map; the agent is killed."""
    return woken_in_memory(stage, SHARED)

@scene("in use", twin="orphans/own_shared_memory")
def memory_with_a_key(stage):
    """A person wakes a server at a semaphore in memory of System V, which he attaches by its key for each call; the agent is killed."""
    return woken_in_memory(stage, """
        libc.shmat.restype = ctypes.c_void_p
        number = libc.shmget(os.stat(DIR).st_ino % 2**31, 4096, 0o1666)
    """, """
        semaphore = ctypes.c_void_p(libc.shmat(number, None, 0))
    """, """
        libc.shmdt(semaphore)
        libc.shmctl(number, 0, None)
    """)

@scene("in use", twin="orphans/own_shared_memory")
def memory_without_a_name(stage):
    """A person wakes a server at a semaphore in a file without a name, which he has open and maps for each call; the agent is killed."""
    return woken_in_memory(stage, """
        file = os.open(f"{DIR}/go/memory", os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(file, 4096)
        ALIAS == "person" and os.unlink(f"{DIR}/go/memory")
    """, """
        memory = mmap.mmap(file, 4096)
        semaphore = ctypes.byref(ctypes.c_char.from_buffer(memory))
    """, """
        del semaphore
        memory.close()
    """)

@scene("in use", twin="orphans/channel_hung_up")
def system_v_queue(stage):
    """A person sends jobs to a server through a message queue of System V; the agent is killed."""
    stage.part("mcp-server-fake", SYSTEM_V + """
        def attend():
            buffer = ctypes.create_string_buffer(100)
            while libc.msgrcv(queue, buffer, 90, 0, 0) >= 0:
                tell("go/answer", "")
        in_background(attend)
        serve()
    """)
    agent = stage.agent()
    person = stage.run(stage.part("person", SYSTEM_V + """
        def ask():
            libc.msgsnd(queue, ctypes.create_string_buffer(b"\\1" + b"\\0" * 20), 4, 0)
            wait_for("answer")
            libc.msgctl(queue, 0, None)
        on_call("person", ask)
    """))
    stage.when_called("person", person)
    return stage.killed(agent, in_use=["mcp-server-fake"])

@scene("in use", twin="orphans/channel_hung_up")
def third_channel(stage):
    """The agent made a third channel (an IPC socket pair on fd 3) and handed it on; the agent is killed, the channel is in use."""
    stage.part("mcp-server-fake", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        def attend():
            while channel.recv(100):
                channel.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    stage.part("worker", """
        channel = socket.socket(fileno=int(argument("--ipc")))
        here()
        use("worker", lambda: ask_over(channel))
    """)
    agent = stage.rests("claude", """
        near, far = socket.socketpair()
        start("mcp-server-fake", "--ipc", str(far.fileno()), pass_fds=[far.fileno()])
        far.close()
        start("worker", "--ipc", str(near.fileno()), wire=None, pass_fds=[near.fileno()])
        present("worker")
    """)
    stage.beats("worker")
    return stage.killed(agent, in_use=["worker", "mcp-server-fake"])
