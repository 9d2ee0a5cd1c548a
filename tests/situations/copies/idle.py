import situation
import textwrap
from situation import scene

QUEUE = """
        librt = ctypes.CDLL("librt.so.1", use_errno=True)
        name = ("/" + os.path.basename(DIR)).encode()
        queue = librt.mq_open(name, 0o102, 0o600, None)
"""

def idle(stage, host, work, person, asleep=True):
    """The host is killed. Its forked worker, which inherited the server's wire and does `work()`, announces itself and rests until a
    person does `ask()`. An unknown host must have used its server."""
    asks = stage.run(stage.part("person", textwrap.dedent(person) + "\non_call('person', ask)\n"))
    rest = "use('host', server.ask)" if host == "chat_host.py" else "rest()"
    body = f"server = start('mcp-server-fake')\n{textwrap.dedent(work)}\ncopy(work)\nhere()\n{rest}\n"
    killed = stage.run(stage.part(host, body))
    stage.who(host)
    worker = stage.who("worker")
    if host == "chat_host.py":
        stage.was_used("host")
    stage.when_called("person", asks)
    if asleep:
        stage.asleep(worker)
    return stage.killed(killed, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def idle_at_a_closed_fifo(stage):
    """The host is killed; a forked worker that holds the wire waits in open(2) for whoever opens its FIFO next."""
    return idle(stage, "chat_host.py", """
        os.mkfifo(f"{DIR}/requests")
        os.mkfifo(f"{DIR}/answers")
        def work():
            here("worker")
            while True:
                with open(f"{DIR}/requests") as fifo:
                    fifo.read()
                server.ask()
                with open(f"{DIR}/answers", "w") as fifo:
                    fifo.write("pong")
    """, """
        def ask():
            with open(f"{DIR}/requests", "w") as fifo:
                fifo.write("ping")
            with open(f"{DIR}/answers") as fifo:
                if fifo.read() != "pong":
                    raise EOFError
    """)

@scene(
    "in use", name="idle_at_a_folder_without_a_leader", twin="orphans/pool_workers", leads=False,
    about="The host is killed; the leading thread of a forked worker that holds the wire has ended; another one waits for files in a folder.",
)
@scene("in use", twin="orphans/pool_workers")
def idle_at_a_folder(stage, leads=True):
    """The host is killed; a forked worker that holds the wire waits for files that a person puts into a folder (inotify)."""
    return idle(stage, "claude", f"""
        os.makedirs(f"{{DIR}}/inbox")
        def attend():
            inbox = checked(libc.inotify_init1(0), "inotify")
            checked(libc.inotify_add_watch(inbox, f"{{DIR}}/inbox".encode(), 0x100), "watch")
            here("worker")
            while select.select([inbox], [], [])[0] and os.read(inbox, 4096):
                server.ask()
                tell("go/answer", "")
        def work():
            if {leads}:
                attend()
            in_background(attend)
            libc.syscall(60, 0)
    """, """
        def ask():
            open(f"{DIR}/inbox/task", "w").close()
            wait_for("answer")
    """, asleep=leads)

@scene("in use", twin="orphans/pool_workers")
def idle_at_a_list_of_the_kernel(stage):
    """The host is killed; a forked worker that holds the wire waits until somebody mounts a disk, at the kernel's list of mounts."""
    return idle(stage, "claude", """
        own_mounts()
        def work():
            disks, mounts = select.poll(), open("/proc/self/mounts")
            disks.register(mounts, select.POLLPRI)
            here("worker")
            while disks.poll():
                server.ask()
                tell("go/answer", "")
    """, """
        def ask():
            namespace = os.open(f"/proc/{present('worker')}/ns/mnt", os.O_RDONLY)
            checked(libc.setns(namespace, 0), "setns")
            checked(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None), "mount")
            wait_for("answer")
            checked(libc.umount2(b"/mnt", 2), "umount")
    """)

@scene("in use", twin="orphans/pool_workers")
def idle_at_a_lock(stage):
    """The host is killed; a forked worker that holds the wire waits for a file that a person has locked."""
    return idle(stage, "claude", """
        def work():
            present("person")
            here("worker")
            lock = open(f"{DIR}/lock", "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            server.ask()
            tell("go/answer", "")
    """, """
        lock = open(f"{DIR}/lock", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        here()
        def ask():
            fcntl.flock(lock, fcntl.LOCK_UN)
            wait_for("answer")
    """)

@scene("in use", twin="orphans/pool_workers")
def idle_at_a_message_queue(stage):
    """The host is killed; a forked worker that holds the wire waits at a POSIX message queue."""
    return idle(stage, "chat_host.py", QUEUE + """
        def work():
            here("worker")
            buffer = ctypes.create_string_buffer(8192)
            while librt.mq_receive(queue, buffer, 8192, None) >= 0:
                server.ask()
                tell("go/answer", "")
    """, QUEUE + """
        def ask():
            librt.mq_send(queue, b"ping", 4, 0)
            wait_for("answer")
            librt.mq_unlink(name)
    """)

@scene("in use", twin="orphans/pool_workers_at_a_queue")
def idle_for_a_time(stage):
    """The host is killed; a forked worker that holds the wire waits at a socket with a time limit of its own (SO_RCVTIMEO), then goes on."""
    host = stage.rests("chat_host.py", """
        import struct
        server = start("mcp-server-fake")
        queue, far = socket.socketpair()
        def work():
            queue.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 20, 0))
            tell("beats/worker", "0")
            try:
                queue.recv(1)
            except BlockingIOError:
                pass
            use("worker", server.ask)
        copy(work, alias="worker")
        # Whoever else would write to the queue rests for ever, too.
        copy(rest, alias="other")
    """)
    worker, other = stage.who("worker"), stage.who("other")
    stage.asleep(worker, other)
    stage.checks.append(lambda: situation.within("the worker goes on", lambda: stage._count("worker") > 0))
    stage.over.add("worker")
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers_at_a_queue")
def idle_at_a_pipe(stage):
    """The host is killed; a forked worker that holds the wire waits for the next line from a pipe that a person writes to."""
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
    person = stage.run(stage.part("person", """
        (far_r, w), (r, far_w) = os.pipe(), os.pipe()
        start("chat_host.py", wire=None, stdin=far_r, stdout=far_w)
        os.close(far_r)
        os.close(far_w)
        def ask():
            os.write(w, b"ping")
            if os.read(r, 100) != b"pong":
                raise EOFError("no answer")
        on_call("person", ask)
    """))
    host, worker = stage.who("chat_host.py"), stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def idle_at_a_terminal(stage):
    """The host is killed; a forked worker that holds the wire waits for the next line that a person types at its terminal."""
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
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def idle_at_an_eventfd(stage):
    """The host is killed; a forked worker that holds the wire waits at an eventfd, by which a person outside gives it work."""
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
            goes_into_the_background()
            os.execv(f"{BIN}/person", ["person", "--jobs", str(jobs)])
        os.wait()
        present("person")
        here()
        use("host", server.ask)
    """))
    person, worker = stage.who("person"), stage.who("worker")
    stage.was_used("host")
    stage.when_called("person", person)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def idle_with_a_connection(stage):
    """The host is killed; a forked worker that holds the wire waits on a connection to a gateway for its next request."""
    return idle(stage, "claude", """
        def work():
            broker = dial("tcp", "person")
            broker.settimeout(None)
            here("worker")
            while broker.recv(100):
                server.ask()
                broker.sendall(b"pong")
    """, """
        caller = listen("tcp").accept()[0]
        caller.settimeout(TIMEOUT)
        def ask():
            ask_over(caller)
    """)

@scene("in use", twin="orphans/pool_workers")
def idle_with_a_listener(stage):
    """The host is killed; a forked worker that holds the wire is idle, but listens for requests of its own."""
    return idle(stage, "claude", """
        def work():
            listener = listen("unix", "worker")
            here("worker")
            with listener.accept()[0] as call:
                while call.recv(100):
                    server.ask()
                    call.sendall(b"pong")
    """, """
        def ask():
            call("unix", "worker")
    """)

@scene("in use", twin="orphans/pool_workers")
def idle_with_a_server(stage):
    """The host is killed; a forked worker that holds the wire is idle, but has a server of its own."""
    host = stage.rests("claude", """
        server = start("mcp-server-fake", "--as", "shared")
        def work():
            own = start("mcp-server-fake", "--as", "own")
            on_call("worker", lambda: (server.ask(), own.ask()))
        copy(work, alias="worker")
    """)
    stage.when_called("worker", stage.who("worker"))
    return stage.killed(host, in_use=["worker", "own", "shared"])

@scene("in use", twin="orphans/pool_workers")
def sleeps_until_its_time(stage):
    """The host is killed; a forked worker that holds the wire sleeps until the time of its next try, which is long after the grace."""
    host = stage.rests("chat_host.py", """
        server = start("mcp-server-fake")
        def work():
            signal.signal(signal.SIGUSR1, lambda *_: (server.ask(), tell("beats/worker", "1")))
            tell("beats/worker", "0")
            while True:
                time.sleep(3600)
        copy(work, alias="worker")
    """)
    worker = stage.who("worker")
    stage.asleep(worker)
    # The time of its next try comes when the judgement is over.
    stage.when_called("worker", worker)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def waits_for_a_job(stage):
    """The host is killed; a forked worker that holds the wire waits for a program that it started, and then goes on."""
    job = stage.part("job", "here()\nrest()\n")
    return idle(stage, "claude", f"""
        def work():
            here("worker")
            subprocess.call([{job!r}], stdin=subprocess.DEVNULL, close_fds=True)
            server.ask()
            tell("go/answer", "")
    """, """
        job = os.pidfd_open(present("job"))
        def ask():
            signal.pidfd_send_signal(job, signal.SIGTERM)
            wait_for("answer")
    """)

@scene("in use", twin="orphans/pool_workers")
def waits_for_a_program_that_it_traces(stage):
    """The host is killed; a forked worker that holds the wire traces another program and waits for its end (wait4(2))."""
    stage.run(stage.part("program.py", "here()\nrest()\n"))
    host = stage.rests("claude", """
        server = start("mcp-server-fake")
        program = present("program.py")
        def work():
            trace(program)
            here("worker")
            os.waitpid(-1, 0x40000000)
            server.ask()
        copy(work)
    """)
    worker = stage.who("worker")
    stage.asleep(worker)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def woken_by_an_alarm(stage):
    """The host is killed; a forked worker that holds the wire reads a pipe, and an alarm each ten seconds (setitimer(2)) has it ask the server."""
    return idle(stage, "claude", """
        def beat(*_):
            server.ask()
            tell("go/beat", "")
        def work():
            signal.signal(signal.SIGALRM, beat)
            signal.setitimer(signal.ITIMER_REAL, 10, 10)
            here("worker")
            os.read(os.pipe()[0], 1)
    """, """
        def ask():
            if os.path.exists(f"{DIR}/go/beat"):
                os.remove(f"{DIR}/go/beat")
            wait_for("beat")
    """)
