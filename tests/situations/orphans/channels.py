import os
import situation
from situation import scene

@scene(
    "orphan", name="its_database_has_ended", twin="clients/half_closed",
    database='call = listen("tcp").accept()[0]\ncall.recv(100)\ncall.sendall(b"pong")\nos._exit(0)\n',
    about="The server keeps a connection, as a pool does, to a database that has ended since; its agent is killed.",
)
@scene("orphan", twin="clients/keep_alive")
def calls_a_database(stage, database="answer_calls(listen('tcp'))\n"):
    """The server keeps a connection to a database that lives: it is the client itself. Its agent is killed."""
    stage.run(stage.part("database", database))
    stage.part("mcp-server-fake", """
        database = dial("tcp", "database")
        ask_over(database)
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/called_from_another_host")
def calls_another_host(stage):
    """The server keeps a connection to a service on another host, at a port that is nobody's usual one; its agent is killed."""
    stage.part("service", """
        answer_calls(socket.create_server(("192.0.2.7", 8123)))
    """)
    stage.part("mcp-server-fake", """
        service = reach(("192.0.2.7", 8123))
        ask_over(service)
        serve()
    """)
    stage.part("claude", 'start("mcp-server-fake")\nhere()\nrest()\n')
    desk = stage.run(stage.part("desk", """
        network_of_two_hosts()
        start("service", wire=None)
        start("claude", wire=None)
        rest()
    """))
    return stage.killed(stage.who("claude"), orphans=["mcp-server-fake"], in_use=[desk])

@scene("orphan", twin="clients/last_call_a_moment_ago")
def called_in_another_network(stage):
    """A server of another agent lives in a network of its own and called the same port there; this one's port nobody called. The agent is killed."""
    stage.listens("mcp-server-web", "tcp")
    agent = stage.agent("mcp-server-web")
    stage.part("mcp-server-other", """
        with open(f"{DIR}/go/mcp-server-web.tcp") as f:
            here = ("127.0.0.1", int(f.read()))
        own_network()
        in_background(answer_calls, socket.create_server(here))
        call("tcp", "mcp-server-web")
        serve()
    """)
    other = stage.rests("codex", 'start("mcp-server-other")')
    return stage.killed(agent, orphans=["mcp-server-web"], in_use=[other, "mcp-server-other"])

@scene("orphan", twin="clients/calls_that_are_reset")
def calls_its_own_port(stage):
    """A server asks itself over a short connection, which it resets; nobody else calls its port. The agent is killed."""
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"))
        def call_and_reset():
            with dial("tcp", "mcp-server-web") as connection:
                ask_over(connection)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        call_and_reset()
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-web"), orphans=["mcp-server-web"])

@scene(
    "orphan", name="calls_its_own_port_by_the_hosts_name", twin="clients/last_call_a_moment_ago", check='os.system(f"{ASK} 127.0.1.1 {port}")',
    about="A server asks its own port each second by a child, at 127.0.1.1, as a host of Debian calls itself; its agent is killed.",
)
@scene("orphan", twin="clients/last_call_a_moment_ago")
def calls_its_own_port_by_a_child(stage, check='os.system(f"{ASK} 127.0.0.1 {port}")'):
    """A server asks its own port each second by a child, as a health check by curl does; its agent is killed."""
    stage.part("mcp-server-web", f"""
        listener = socket.create_server(("0.0.0.0", 0))
        port = listener.getsockname()[1]
        in_background(answer_calls, listener)
        ASK = "exec /bin/bash -c 'exec 3<>/dev/tcp/$0/$1; echo ping >&3; read -n4 <&3'"
        def check():
            while True:
                {check}
                time.sleep(1)
        in_background(check)
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-web"), orphans=["mcp-server-web"])

@scene("orphan", twin="clients/last_call_a_moment_ago")
def workers_at_its_own_port(stage):
    """Six workers of a server are connected to the port at which it listens; its agent is killed."""
    stage.part("mcp-server-web", """
        listener = socket.create_server(("127.0.0.1", 0))
        worker = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}; read -u 3"
        quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        workers = [subprocess.Popen(["bash", "-c", worker], **quiet) for _ in range(6)]
        calls = [listener.accept()[0] for _ in workers]
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-web"), orphans=["mcp-server-web"])

@scene("orphan", twin="clients/third_channel")
def channel_hung_up(stage):
    """The agent had a third channel to its server, on fd 3; it is killed."""
    agent = stage.rests("claude", """
        near, far = socket.socketpair()
        start("mcp-server-fake", pass_fds=[far.fileno()])
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/unix_short_calls")
def looked_into(stage):
    """A person looked into the JVM of a server once (jstack), which waits for debuggers at a socket since; the agent is killed."""
    stage.part("mcp-server-fake", """
        path = f"{DIR}/.java_pid{os.getpid()}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        with socket.socket(socket.AF_UNIX) as person:
            person.connect(path)
            listener.accept()[0].close()
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/own_protocol")
def pings(stage):
    """A server pinged a host as an ordinary user does, by a socket for datagrams; the agent is killed."""
    stage.part("mcp-server-fake", """
        own_network()
        with open("/proc/sys/net/ipv4/ping_group_range", "w") as allowed:
            allowed.write("0 0")
        ping = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
        ping.sendto(struct.pack("BBHHH", 8, 0, 0, 0, 1), ("127.0.0.1", 0))
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/event_counter")
def event_counter(stage):
    """The agent shared an eventfd with its server, which waits at it, and is killed."""
    stage.part("mcp-server-fake", """
        jobs = int(argument("--jobs"))
        in_background(lambda: os.eventfd_read(jobs))
        serve()
    """)
    agent = stage.rests("claude", """
        jobs = os.eventfd(0)
        start("mcp-server-fake", "--jobs", str(jobs), pass_fds=[jobs])
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan", twin="handed_on/in_flight")
def flight_cancelled(stage):
    """The wires were on their way to somebody in a unix socket that was closed unread; the agent is killed."""
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        near, far = socket.socketpair()
        send_fds(near, server.w, server.r)
        near.close()
        far.close()
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan", twin="let_go/in_a_terminal")
def idle_terminal(stage):
    """A leaking server had opened a terminal with a shell that waits for commands; the agent is killed."""
    stage.part("mcp-server-terminal", """
        import pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/bash", ["bash", "--norc"])
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-terminal"), orphans=["mcp-server-terminal"])

@scene("orphan", twin="clients/serial_line")
def terminal_of_the_same_number(stage):
    """A leaking server had opened a terminal; somebody works in one of the same number in a devpts of his own, as in a container, and names the server's (`O_PATH`); the agent is killed."""
    stage.part("mcp-server-serial", """
        master, line = os.openpty()
        tell("line", os.ttyname(line))
        tell("go/line", "")
        serve()
    """)
    agent = stage.agent("mcp-server-serial")
    stage.rests("guest", """
        wait_for("line")
        path = open(DIR + "/line").read().strip()
        named = os.open(path, os.O_PATH)
        if os.fork() > 0:
            os._exit(0)
        master = terminal_elsewhere(path)
    """)
    return stage.killed(agent, orphans=["mcp-server-serial"])

@scene("orphan", twin="clients/nameless_pipe")
def nameless_pipe_hung_up(stage):
    """The agent had two pipes to its server beside the standard streams, and nobody else has them; it is killed."""
    agent = stage.rests("claude", """
        jobs, results = os.pipe(), os.pipe()
        start("mcp-server-fake", pass_fds=[jobs[0], results[1]])
    """)
    return stage.killed(agent, orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/shared_memory")
def own_shared_memory(stage):
    """A server and its worker wake each other at a semaphore in memory that nobody else maps; the agent is killed."""
    stage.part("mcp-server-fake", """
        memory = mmap.mmap(-1, 4096)
        semaphore = ctypes.byref(ctypes.c_char.from_buffer(memory))
        libc.sem_init(semaphore, 1, 0)
        if os.fork() == 0:
            here("worker")
            while libc.sem_wait(semaphore) == 0:
                pass
        in_background(lambda: libc.sem_wait(semaphore))
        present("worker")
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake", "worker"])

@scene("orphan", twin="clients/shared_memory")
def pool_of_its_own(stage):
    """A server has a pool of workers that Python's multiprocessing spawned, at semaphores with made-up names; the agent is killed."""
    stage.part("mcp-server-fake", """
        if __name__ == "__main__":
            import multiprocessing
            pool = multiprocessing.get_context("spawn").Pool(2)
            pool.map(abs, [1, 2])
            serve()
    """)
    agent = stage.agent()
    workers = [p for p in stage.everyone() if "--multiprocessing-fork" in p.argv()]
    return stage.killed(agent, orphans=["mcp-server-fake", *workers])

@scene("orphan", twin="stdout/stdin_closed")
def reader_gone(stage):
    """Somebody read the server's results on behalf of the agent, and was killed with it."""
    stage.part("collector", "here()\nrest()\n")
    agent = stage.rests("claude", """
        server = start("mcp-server-fake")
        collected(server)
    """)
    agent.kill()
    stage.who("collector").kill()
    return stage.truth(orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/udp_connected_to_an_open_socket")
def reports_over_udp(stage):
    """The server reports figures over UDP, to a collector that lives and to a port where nobody is; its agent is killed."""
    stage.part("mcp-server-fake", """
        while not os.path.exists(f"{DIR}/go/collector.port"):
            time.sleep(0.02)
        with open(f"{DIR}/go/collector.port") as f:
            port = int(f.read())
        def connected(port):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.connect(("127.0.0.1", port))
            return sock
        sinks = [connected(port), connected(9)]
        # The system gives this one a port when it sends first.
        loose = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        def report():
            while True:
                loose.sendto(b"calls:1|c", ("127.0.0.1", port))
                for sock in sinks:
                    try:
                        sock.send(b"calls:1|c")
                    except ConnectionRefusedError:
                        pass
                time.sleep(0.5)
        in_background(report)
        serve("timer")
    """)
    stage.run(stage.part("collector", """
        # As collectors have it: a port of its own choice, below those that the system gives out.
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for port in range(8125, 32000):
            try:
                sock.bind(("127.0.0.1", port))
                break
            except OSError:
                pass
        tell("go/collector.port", str(port))
        here()
        sock.recv(100)
        tell("go/collected", "1")
        rest()
    """))
    stage.who("collector")
    agent = stage.agent()
    situation.within("a report", lambda: os.path.exists(f"{stage.dir}/go/collected"))
    server = stage.who("mcp-server-fake")
    return stage.killed(agent, orphans=[server])

@scene("orphan", twin="handed_on/successor_unknown")
def siblings(stage):
    """Three servers of one killed agent hold each other's wires open."""
    agent = stage.rests("claude", """
        for n in range(3):
            near_w, near_r, far_r, far_w = wires("pipe")
            os.set_inheritable(near_w, True)
            os.set_inheritable(near_r, True)
            subprocess.Popen([f"{BIN}/mcp-server-fake", "--as", f"server{n}"], stdin=far_r, stdout=far_w, close_fds=False)
            os.close(far_r)
            os.close(far_w)
            Server(near_w, near_r).ask()
    """)
    return stage.killed(agent, orphans=[f"server{n}" for n in range(3)])

@scene("orphan", twin="clients/port_that_another_server_sought")
def port_that_another_server_sought(stage):
    """A server could not have the port of another agent's, and found one that is free; the agent of that one is killed."""
    stage.listens("mcp-server-hub", "tcp")
    agent = stage.agent("mcp-server-hub")
    stage.part("mcp-server-follower", """
        seeks_port_of("mcp-server-hub")
        listener = listen("tcp")
        serve()
    """)
    stage.rests("codex", 'start("mcp-server-follower")')
    return stage.killed(agent, orphans=["mcp-server-hub"], in_use=[stage.who("mcp-server-follower")])

@scene("orphan", twin="clients/keep_alive")
def silent_listener(stage):
    """The server listens on a port too, but nobody ever called; its agent is killed."""
    stage.listens("mcp-server-fake", "tcp")
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/service_of_a_manager")
def silent_listener_of_an_unknown_host(stage):
    """The same below a home-made host, which spoke the protocol to it; the host is killed."""
    stage.part("mcp-server-fake", 'time.sleep(0.5)\nin_background(answer_calls, listen("tcp"))\nserve()\n')
    host = stage.run(stage.part("chat_host.py", "use('host', session('mcp-server-fake').ask)\n"))
    stage.was_used("host")
    return stage.killed(host, orphans=["mcp-server-fake"])

@scene("orphan", twin="handed_on/successor")
def successor_died(stage):
    """The wires were handed to a successor, and then the successor was killed as well."""
    path = stage.part("claude", """
        if ALIAS == "second":
            here()
            rest()
        server = start("mcp-server-fake")
        start("claude", "--as", "second", wire=None, pass_fds=[server.w, server.r])
        present("second")
    """)
    first = stage.run(path, "--as", "first")
    second = stage.who("second")
    situation.within("the first's end", lambda: not first.alive())
    return stage.killed(second, orphans=["mcp-server-fake"])

@scene("orphan", twin="clients/control_fifo_made_anew")
def waits_for_a_debugger(stage):
    """The runtime of the server (.NET) waits at a FIFO and a socket of its own for debuggers; the agent is killed."""
    stage.part("mcp-server-fake", """
        ours = f"{os.getpid()}-1"
        profilers = socket.socket(socket.AF_UNIX)
        profilers.bind(f"{DIR}/dotnet-diagnostic-{ours}-socket")
        profilers.listen()
        os.mkfifo(f"{DIR}/clr-debug-pipe-{ours}-in")
        in_background(open, f"{DIR}/clr-debug-pipe-{ours}-in", "rb")
        serve()
    """)
    return stage.killed(stage.agent(), orphans=["mcp-server-fake"])
