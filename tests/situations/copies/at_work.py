import signal
import situation
from situation import scene

@scene("in use", twin="orphans/terminal_closed")
def background(stage):
    """An agent forks itself, the copy calls setsid without exec, the launcher dies by SIGHUP; the copy works on."""
    agent = stage.rests("claude", """
        server = start("mcp-server-fake", start_new_session=True)
        copy(lambda: use("copy", server.ask), setsid=True, alias="copy")
    """)
    stage.beats("copy")
    agent.kill(signal.SIGHUP)
    return stage.truth(in_use=["copy", "mcp-server-fake"])

@scene("in use")
def background_starts_more(stage):
    """An agent's copy in a session of its own, without exec, starts one more server when the launcher has been killed."""
    agent = stage.rests("claude", """
        server = start("mcp-server-fake", "--as", "first")
        def go_on():
            wait_for("launcher is dead")
            more = start("mcp-server-fake", "--as", "second")
            use("copy", lambda: (server.ask(), more.ask()))
        copy(go_on, setsid=True, alias="copy")
    """)
    stage.who("copy")
    agent.kill(signal.SIGKILL)
    stage.go("launcher is dead")
    stage.beats("copy")
    return stage.truth(in_use=["copy", "first", "second"])

@scene("in use")
def copy_of_a_copy(stage):
    """The host and its worker are killed; the worker's own fork, in the same session, works on through the wire."""
    host = stage.rests("claude", """
        server = start("mcp-server-fake", wire="socket")
        def work():
            copy(lambda: use("second", server.ask), alias="second")
            rest()
        copy(work, alias="first")
    """)
    stage.beats("second")
    host.kill()
    stage.who("first").kill()
    return stage.truth(in_use=["second", "mcp-server-fake"])

@scene("in use", twin="orphans/fed_by_an_idle_copy")
def fed_by_a_busy_copy(stage):
    """The host is killed; a copy without the wire works on, and will give work to an idle one that has it, through a queue between the two."""
    host = stage.rests("claude", """
        (queue, tasks), (results, done) = os.pipe(), os.pipe()
        def feed():
            os.write(tasks, b"x")
            if not select.select([results], [], [], TIMEOUT)[0]:
                raise TimeoutError("no result")
            os.read(results, 1)
        def front():
            called = []
            signal.signal(signal.SIGUSR1, lambda *_: called.append(True))
            tell("beats/front", "0")
            while not called:
                sum(range(20000))
                time.sleep(0.05)
            use("front", feed)
        copy(front, alias="front")
        server = start("mcp-server-fake")
        def work():
            while os.read(queue, 1):
                server.ask()
                os.write(done, b"y")
        copy(work, alias="worker")
    """)
    front, worker = stage.who("front"), stage.who("worker")
    stage.asleep(worker)
    stage.when_called("front", front)
    return stage.killed(host, in_use=[front, worker, "mcp-server-fake"])

@scene("in use")
def gateway_in_the_background(stage):
    """A gateway forks itself into the background and the foreground ends with success."""
    agent = stage.run(stage.part("openclaw", """
        server = start("mcp-server-fake", wire="socket")
        copy(lambda: use("copy", server.ask), alias="copy")
        present("copy")
        os._exit(0)
    """), "gateway")
    stage.beats("copy")
    return stage.ended(agent, in_use=["copy", "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def idle_in_a_session(stage):
    """The host is killed; a forked copy in a session of its own holds the wire, idle until it is asked."""
    host = stage.rests("claude", """
        server = start("mcp-server-fake")
        copy(lambda: on_call("copy", server.ask), setsid=True, alias="copy")
    """)
    stage.when_called("copy", stage.who("copy"))
    return stage.killed(host, in_use=["copy", "mcp-server-fake"])

@scene("in use", twin="handed_on/stopped_successor")
def stopped(stage):
    """The host is killed; a forked worker that holds the wire is stopped for now, as by a debugger, and goes on later."""
    host = stage.rests("claude", """
        server = start("mcp-server-fake")
        copy(lambda: use("worker", server.ask), alias="worker")
    """)
    worker = stage.who("worker")
    stage.beats("worker")
    worker.kill(situation.signal.SIGSTOP, wait=False)
    situation.within("the worker stops", lambda: open(f"/proc/{worker.pid}/stat").read().rpartition(")")[2].split()[0] == "T")
    stage.when_called("worker", worker, situation.signal.SIGCONT)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene(
    "in use", name="waits_for_an_answer_in_a_loop", twin="orphans/pool_workers", waits="e = select.epoll(); e.register(server.r); e.poll()",
    about="The same, and the worker waits in a loop of events (epoll).",
)
@scene(
    "in use", name="waits_for_an_answer_on_a_socket", twin="orphans/pool_workers", wire="socket", about="The same on a pair of sockets.",
)
@scene(
    "in use", name="waits_for_an_answer_on_a_third_channel", twin="orphans/pool_workers", channel=9,
    about="The same on a third channel, as node's IPC is one.",
)
@scene(
    "in use", name="passes_answers_on", twin="orphans/pool_workers", passes_on="os.write(1, b'done')",
    about="The same, and the worker does nothing but pass answers on to a person by its standard output.",
)
@scene("in use", twin="orphans/pool_workers")
def waits_for_an_answer(stage, wire="pipe", channel=1, waits="", passes_on="tell('go/done', '')"):
    """The host is killed; a forked worker has asked the server something that takes long, and waits for the answer."""
    stage.part("mcp-server-fake", f"""
        here()
        while line := os.read(0, 65536):
            if is_slow := b"slow" in line:
                wait_for("answer")
            answer(line, {channel} if is_slow else 1)
        leak_on("timer")
    """)
    stage.part("claude", f"""
        near, far = socket.socketpair()
        os.dup2(far.fileno(), 9)
        server = start("mcp-server-fake", wire={wire!r}, pass_fds=[9] if {channel} == 9 else [])
        far.close()
        os.close(9)
        def work():
            os.write(server.w, b'{{"id": 0, "method": "slow"}}\\n')
            {waits}
            if b"result" in os.read(near.fileno() if {channel} == 9 else server.r, 65536):
                {passes_on}
            rest()
        copy(work, alias="worker")
        here()
        rest()
    """)
    person = stage.run(stage.part("person", f"""
        r, w = os.pipe()
        start("claude", wire=None, stdout=w)
        os.close(w)
        def ask():
            tell("go/answer", "")
            {"os.read(r, 4) == b'done' or os._exit(1)" if "write" in passes_on else "wait_for('done')"}
        on_call("person", ask)
    """))
    host, worker = stage.who("claude"), stage.who("worker")
    stage.when_called("person", person)
    stage.asleep(worker)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def web_workers(stage):
    """A preforking web application: the master is killed, its workers go on serving people through the shared server."""
    host = stage.rests("webapp.py", """
        import fcntl
        server, listener = start("mcp-server-fake", wire="socket"), listen("tcp")
        def work():
            lock = open(f"{DIR}/lock", "w")
            while True:
                with listener.accept()[0] as call:
                    call.recv(100)
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    server.ask()
                    fcntl.flock(lock, fcntl.LOCK_UN)
                    call.sendall(b"pong")
        for n in range(2):
            copy(work, alias=f"worker{n}")
    """)
    stage.uses("person", "use('person', lambda: call('tcp', 'webapp.py'))\n")
    workers = [stage.who(f"worker{n}") for n in range(2)]
    return stage.killed(host, in_use=["mcp-server-fake", *workers])

@scene("in use", twin="orphans/pool_workers_at_a_semaphore")
def woken_by_a_busy_copy(stage):
    """The host is killed; a copy without the wire works on, and will wake an idle one that has it, through memory that the two share."""
    host = stage.rests("claude", """
        import multiprocessing
        tasks, done = (multiprocessing.get_context("fork").Semaphore(0) for _ in range(2))
        def feed():
            tasks.release()
            if not done.acquire(timeout=TIMEOUT):
                raise TimeoutError("no result")
        def front():
            called = []
            signal.signal(signal.SIGUSR1, lambda *_: called.append(True))
            tell("beats/front", "0")
            while not called:
                sum(range(20000))
                time.sleep(0.05)
            use("front", feed)
        copy(front, alias="front")
        server = start("mcp-server-fake")
        def work():
            while tasks.acquire():
                server.ask()
                done.release()
        copy(work, alias="worker")
    """)
    front, worker = stage.who("front"), stage.who("worker")
    stage.asleep(worker)
    stage.when_called("front", front)
    return stage.killed(host, in_use=[front, worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def worker_at_work(stage):
    """The host is killed; a forked worker in its session goes on talking through the shared wire."""
    host = stage.rests("claude", """
        server = start("mcp-server-fake")
        copy(lambda: use("worker", server.ask), alias="worker")
        for n in range(2):
            copy(rest, alias=f"idle{n}")
    """)
    stage.beats("worker")
    idle = [stage.who(f"idle{n}") for n in range(2)]
    return stage.killed(host, in_use=["worker", "mcp-server-fake"], may_end=idle)

@scene("in use", twin="orphans/pool_workers")
def worker_computes(stage):
    """The host is killed; a forked worker that holds the wire computes and has not used it yet."""
    host = stage.run(stage.part("chat_host.py", """
        server = start("mcp-server-fake")
        def compute():
            done = []
            signal.signal(signal.SIGUSR1, lambda *_: done.append(True))
            tell("beats/worker", "0")
            while not done:
                sum(range(20000))
                time.sleep(0.05)
            server.ask()
            use("worker", server.ask)
        copy(compute, alias="worker")
        use("host", server.ask)
    """))
    stage.was_used("host")
    worker = stage.who("worker")
    stage.when_called("worker", worker)
    return stage.killed(host, in_use=[worker, "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def worker_wakes_now_and_then(stage):
    """The host is killed; a forked worker sleeps, and talks through the shared wire every second and a half."""
    host = stage.rests("claude", """
        server = start("mcp-server-fake")
        def now_and_then():
            server.ask()
            time.sleep(1.25)
        copy(lambda: use("worker", now_and_then), alias="worker")
    """)
    stage.beats("worker", 1)
    return stage.killed(host, in_use=["worker", "mcp-server-fake"])

@scene("in use", twin="orphans/pool_workers")
def workers_with_servers(stage):
    """A host's main process is killed; its forked workers live, each uses a server that it started itself."""
    host = stage.rests("claude", """
        def work(n):
            server = start("mcp-server-fake", "--as", f"server{n}")
            use(f"worker{n}", server.ask)
        for n in range(2):
            copy(lambda: work(n), alias=f"worker{n}")
    """)
    for n in range(2):
        stage.beats(f"worker{n}")
    return stage.killed(host, in_use=[f"{what}{n}" for what in ("worker", "server") for n in range(2)])

@scene("in use", twin="orphans/pool_workers_at_a_queue")
def workers_with_servers_unknown_host(stage):
    """A home-made host that no rule knows is killed; its forked workers live, each uses a server that it started itself."""
    host = stage.rests("chat_host.py", """
        shared = start("mcp-server-fake", "--as", "shared")
        def work(n):
            server = start("mcp-server-fake", "--as", f"server{n}")
            use(f"worker{n}", server.ask)
        for n in range(2):
            copy(lambda: work(n), alias=f"worker{n}")
    """)
    for n in range(2):
        stage.beats(f"worker{n}")
    host.kill()
    in_use = [stage.who(f"{what}{n}") for what in ("worker", "server") for n in range(2)]
    return stage.truth(in_use=in_use, may_end=["shared"])
