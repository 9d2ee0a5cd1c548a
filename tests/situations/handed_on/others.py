from situation import scene

@scene("in use")
def fd_store(stage):
    """A store keeps the wires while the agent is restarted, and gives them to the next one."""
    store = stage.run(stage.part("fd-store", """
        conn = listen("unix").accept()[0]
        server = Server(*receive_fds(conn, 2))
        conn.close()
        here()
        on_call("store", lambda: hand_on(server, "claude", "--as", "next", wait=True))
    """))
    agent = stage.run(stage.part("claude", """
        if ALIAS == "next":
            handed().ask()
            os._exit(0)
        server = start("mcp-server-fake")
        conn = dial("unix", "fd-store")
        send_fds(conn, server.w, server.r)
        conn.recv(1)
    """))
    stage.who("fd-store")
    stage.when_called("store", store)
    return stage.ended(agent, in_use=[store, "mcp-server-fake"])

@scene("in use", twin="orphans/busy_timer")
def fifo_between_hosts(stage):
    """A server on FIFOs with names waits for its next host; the last one was killed, and nobody has them open just now."""
    stage.part("mcp-server-lasting", """
        import time
        here()
        while True:
            asked = os.read(0, 65536)
            if asked:
                answer(asked)
            else:
                time.sleep(0.2)
    """)
    agent = stage.run(stage.part("claude", """
        for name in ("in", "out"):
            os.mkfifo(f"{DIR}/{name}")
        far_r, far_w = os.open(f"{DIR}/in", os.O_RDONLY | os.O_NONBLOCK), os.open(f"{DIR}/out", os.O_RDWR)
        os.set_blocking(far_r, True)
        w, r = os.open(f"{DIR}/in", os.O_WRONLY), os.open(f"{DIR}/out", os.O_RDONLY)
        start("mcp-server-lasting", wire=None, stdin=far_r, stdout=far_w)
        use("claude", Server(w, r).ask)
    """))
    stage.was_used("claude")
    next_host = stage.when_over("codex", """
        def talk():
            w, r = os.open(f"{DIR}/in", os.O_WRONLY), os.open(f"{DIR}/out", os.O_RDONLY)
            Server(w, r).ask()
        on_call("codex", talk)
    """)
    return stage.killed(agent, in_use=["mcp-server-lasting", next_host])

@scene("in use", twin="orphans/flight_cancelled")
@scene(
    "in use", name="in_flight_socket_pair", twin="orphans/flight_cancelled", wire="socket", ends="server.w",
    about="The wire is a socket pair and its near end lies in a unix socket, not received yet.",
)
@scene(
    "in use", name="in_flight_unaccepted", twin="orphans/flight_cancelled", accepts=False,
    about="The wires lie in a connection that was not even accepted yet.",
)
def in_flight(stage, wire="pipe", ends="server.w, server.r", accepts=True):
    """The wires lie in a unix socket: sent by the agent, which was killed, not received yet by who will use them."""
    user = stage.run(stage.part("chat.py", f"""
        {'call = listen("unix").accept()[0]' if accepts else 'listener = listen("unix")'}
        server = []
        def ask():
            if not server:
                ends = receive_fds({"call" if accepts else "listener.accept()[0]"}, {1 if wire == "socket" else 2})
                server.append(Server(ends[0], ends[-1]))
            server[0].ask()
        on_call("chat", ask)
    """))
    agent = stage.rests("claude", f"""
        server = start("mcp-server-fake", wire="{wire}")
        conn = dial("unix", "chat.py")
        send_fds(conn, {ends})
    """)
    stage.when_called("chat", user)
    return stage.killed(agent, in_use=[user, "mcp-server-fake"])

@scene("in use")
def made_by_a_helper(stage):
    """A host starts its servers through a helper that makes the wires and sends their ends; the helper is killed, the host goes on."""
    host = stage.run(stage.part("some_host.py", """
        near, far = socket.socketpair()
        start("zygote", "--to", str(far.fileno()), wire=None, pass_fds=[far.fileno()])
        far.close()
        server = Server(*receive_fds(near, 2))
        here()
        use("host", server.ask)
    """))
    stage.part("zygote", """
        sock = socket.socket(fileno=int(argument("--to")))
        server = start("mcp-server-fake")
        send_fds(sock, server.w, server.r)
        server.let_go()
        here()
        rest()
    """)
    zygote = stage.who("zygote")
    stage.beats("host")
    return stage.killed(zygote, in_use=[host, "mcp-server-fake"])

@scene("in use")
def named_fifo(stage):
    """An agent started the server on FIFOs with names; a child of another agent, which lives, opened them and talks."""
    agent = stage.rests("claude", """
        for name in ("in", "out"):
            os.mkfifo(f"{DIR}/{name}")
        start("/bin/sh", "-c", f"exec {BIN}/mcp-server-fake < {DIR}/in > {DIR}/out", wire=None)
    """)
    stage.part("talker.py", """
        here()
        w, r = os.open(f"{DIR}/in", os.O_WRONLY), os.open(f"{DIR}/out", os.O_RDONLY)
        use("talker", Server(w, r).ask)
    """)
    other = stage.run(stage.part("codex", """
        start("talker.py", wire=None)
        rest()
    """))
    stage.beats("talker")
    return stage.killed(agent, in_use=[other, "talker.py", "mcp-server-fake"])

@scene("in use")
def pidfd_getfd(stage):
    """Somebody duplicated the agent's ends of the wires by pidfd_getfd and talks; the agent is killed."""
    agent = stage.rests("claude", """
        server = start("mcp-server-fake", wire="socket")
        tell("go/wire", str(server.w))
    """)
    user = stage.run(stage.part("tap.py", """
        wire = steal_fd(present("claude"), int(open(f"{DIR}/go/wire").read()))
        here()
        use("tap", Server(wire, wire).ask)
    """))
    stage.beats("tap")
    return stage.killed(agent, in_use=[user, "mcp-server-fake"])

@scene("in use")
def pool(stage):
    """A pool makes servers and hands their wires over by SCM_RIGHTS, then it dies."""
    user = stage.run(stage.part("chat.py", """
        here()
        conn = listen("unix").accept()[0]
        server = Server(*receive_fds(conn, 2))
        conn.close()
        use("chat", server.ask)
    """))
    pool = stage.rests("pool.py", """
        server = start("mcp-server-fake")
        conn = dial("unix", "chat.py")
        send_fds(conn, server.w, server.r)
    """)
    stage.beats("chat")
    return stage.killed(pool, in_use=[user, "mcp-server-fake"])

@scene("in use")
def pool_known_agent(stage):
    """A known agent hands the wire over by SCM_RIGHTS to a program younger than the server, and ends with success."""
    pool = stage.run(stage.part("claude", """
        server = start("mcp-server-fake", wire="socket")
        here()
        conn = listen("unix").accept()[0]
        send_fds(conn, server.w)
        conn.recv(1)
    """))
    stage.who("claude")
    user = stage.run(stage.part("chat.py", """
        conn = dial("unix", "claude")
        wire, = receive_fds(conn, 1)
        conn.sendall(b"x")
        conn.close()
        use("chat", Server(wire, wire).ask)
    """))
    stage.beats("chat")
    return stage.ended(pool, in_use=[user, "mcp-server-fake"])

@scene("in use")
def relay(stage):
    """The agent's relay, a child that no rule knows, carries a person's requests to the server; the agent is killed."""
    stage.part("relay", """
        server, listener = handed(), listen("unix")
        here()
        while True:
            with listener.accept()[0] as call:
                while call.recv(100):
                    server.ask()
                    call.sendall(b"pong")
    """)
    agent = stage.rests("claude", 'hand_on(start("mcp-server-fake"), "relay")')
    person = stage.uses("person", """
        relay = dial("unix", "relay")
        use("person", lambda: ask_over(relay))
    """)
    return stage.killed(agent, in_use=[person, "relay", "mcp-server-fake"])

@scene("in use")
def reopened(stage):
    """Somebody opened the server's pipes anew through /proc/PID/fd and talks; the agent is killed."""
    agent = stage.agent()
    user = stage.run(stage.part("tap.py", """
        folder = f"/proc/{present('mcp-server-fake')}/fd"
        here()
        use("tap", Server(os.open(f"{folder}/0", os.O_WRONLY), os.open(f"{folder}/1", os.O_RDONLY)).ask)
    """))
    stage.beats("tap")
    return stage.killed(agent, in_use=[user, "mcp-server-fake"])

@scene("in use", twin="orphans/siblings")
def sibling_that_opted_out(stage):
    """A server that opted out goes on and uses its sibling; the agent of both is killed."""
    stage.part("mcp-server-a", """
        other = handed()
        in_background(use, "a", other.ask)
        read_on()
        leak_on("timer")
    """)
    stage.server("mcp-server-b", "timer")
    agent = stage.rests("claude", """
        b = start("mcp-server-b")
        start("mcp-server-a", *words(b), pass_fds={b.w, b.r}, env={**os.environ, "ORPHAND_OPT_OUT": "1"})
    """)
    stage.beats("a")
    return stage.killed(agent, in_use=["mcp-server-a", "mcp-server-b"])

@scene("in use", twin="orphans/siblings")
def taken_by_a_sibling(stage):
    """A server of the dead agent holds the wire of its sibling and talks through it: it is its client now, and has clients itself."""
    stage.part("mcp-gateway", """
        server = handed()
        def work():
            listener = listen("tcp")
            while True:
                with listener.accept()[0] as call:
                    while call.recv(100):
                        server.ask()
                        call.sendall(b"pong")
        in_background(work)
        serve()
    """)
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        start("mcp-gateway", *words(server), pass_fds=[server.w, server.r])
    """)
    person = stage.uses("person", """
        gateway = dial("tcp", "mcp-gateway")
        use("person", lambda: ask_over(gateway))
    """)
    return stage.killed(agent, in_use=["mcp-gateway", "mcp-server-fake"])

@scene("in use", twin="orphans/siblings")
def used_through_a_sibling(stage):
    """A server uses its sibling; the wires of the first were handed to a successor, which uses it; the agent is killed."""
    stage.part("mcp-server-a", """
        w, r = map(int, argument("--wires").split(","))
        other = Server(w, r)
        def ask():
            other.ask()
            return True
        here()
        pending = b""
        while True:
            data = os.read(0, 65536)
            if not data:
                break
            for line in data.splitlines():
                ask()
                answer(line)
        leak_on("timer")
    """)
    stage.server("mcp-server-b", "timer")
    stage.part("worker", """
        server = handed()
        use("worker", server.ask)
    """)
    agent = stage.rests("claude", """
        b = start("mcp-server-b")
        a = start("mcp-server-a", *words(b), pass_fds={b.w, b.r})
        hand_on(a, "worker")
    """)
    stage.beats("worker")
    return stage.killed(agent, in_use=["worker", "mcp-server-a", "mcp-server-b"])
