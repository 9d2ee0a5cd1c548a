import os
import socket
from situation import scene

@scene("in use", twin="orphans/silent_listener")
def child_listens(stage):
    """Not the server but a child of it listens and has a client; the agent is killed."""
    stage.part("dashboard", """
        listener = listen("tcp")
        here()
        answer_calls(listener)
    """)
    stage.part("mcp-server-web", """
        start("dashboard", wire=None)
        present("dashboard")
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.client("tcp", "dashboard")
    return stage.killed(agent, in_use=["dashboard"], may_end=["mcp-server-web"])

@scene("in use", twin="orphans/calls_a_database")
def idle_connection(stage):
    """A client is connected over IPv6 and says nothing for now; the agent is killed."""
    stage.listens("mcp-server-web", "tcp6")
    agent = stage.agent("mcp-server-web")
    person = stage.when_over("person", """
        connection = dial("tcp6", "mcp-server-web")
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """)
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use")
def io_uring(stage):
    """The server keeps its client's connection in an io_uring and no descriptor of it; the agent is killed."""
    stage.part("mcp-server-fake", """
        listener = listen("tcp")
        def attend():
            caller = listener.accept()[0]
            listener.close()
            ring = Ring(caller.detach())
            while ring.read(100):
                ring.write(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.agent()
    person = stage.client("tcp", "mcp-server-fake")
    return stage.killed(agent, in_use=[person, "mcp-server-fake"])

@scene("in use", twin="orphans/silent_listener")
def own_table(stage):
    """A thread of the server has a descriptor table of its own and listens there; no other thread sees the socket; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = listen("tcp")
        in_own_table(lambda: answer_calls(listener), listener.fileno())
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.client("tcp", "mcp-server-web")
    return stage.killed(agent, in_use=[person, "mcp-server-web"])

@scene("in use", twin="orphans/calls_a_database")
@scene(
    "in use", name="abstract_socket", twin="orphans/silent_listener", kind="abstract", server="mcp-server-ipc",
    about="A client is connected over a unix socket in the abstract namespace; the agent is killed.",
)
@scene(
    "in use", name="udp", kind="udp", server="mcp-server-dns",
    about="The server answers over UDP; its client goes on asking; the agent is killed.",
)
@scene(
    "in use", name="unix_datagrams", kind="datagram", server="mcp-server-log",
    about="The server answers datagrams on a unix socket; its client goes on asking; the agent is killed.",
)
def keep_alive(stage, kind="tcp", server="mcp-server-web"):
    """A client stays connected over TCP; the agent is killed."""
    stage.listens(server, kind)
    agent = stage.agent(server)
    stage.client(kind, server)
    return stage.killed(agent, in_use=[server])

@scene("in use", twin="orphans/stderr_is_read_over_sockets")
def program_for_each_call(stage):
    """A server starts a program right on the connection of each caller, as inetd does; a caller says nothing for now; the agent is killed."""
    stage.part("attendant", "here()\nwhile os.read(0, 100):\n    os.write(1, b'pong')\n")
    stage.part("mcp-server-super", """
        listener = listen("tcp")
        def attend():
            while True:
                with listener.accept()[0] as call:
                    subprocess.Popen([f"{BIN}/attendant"], stdin=call, stdout=call, stderr=call)
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-super")
    stage.when_over("person", """
        call = dial("tcp", "mcp-server-super")
        ask_over(call)
        on_call("person", lambda: ask_over(call))
    """)
    return stage.killed(agent, in_use=["mcp-server-super", "attendant"])

@scene("in use", twin="orphans/calls_a_database")
def listener_closed(stage):
    """The server accepted its one client and closed the listener; the agent is killed."""
    stage.part("mcp-server-web", """
        in_background(answer_calls, listen("tcp"), once=True)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.client("tcp", "mcp-server-web")
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use")
def moved_to_another_network(stage):
    """The server listened, then moved to a network namespace of its own (a sandbox); its client is connected; the agent is killed."""
    stage.part("mcp-server-fake", """
        listener = listen("tcp")
        present("person0")
        caller = listener.accept()[0]
        listener.close()
        own_network()
        def attend():
            while caller.recv(100):
                caller.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", 'start("mcp-server-fake")\nhere()\nrest()\n'))
    person = stage.uses("person", """
        connection = dial("tcp", "mcp-server-fake")
        here("person0")
        use("person", lambda: ask_over(connection))
    """)
    stage.who("claude")
    return stage.killed(agent, in_use=[person, "mcp-server-fake"])

@scene("in use", twin="orphans/silent_listener")
@scene(
    "in use", name="multipath_tcp_from_plain", twin="orphans/silent_listener", client="IPPROTO_TCP",
    about="A client with plain TCP is connected to a listener with multipath TCP; the agent is killed.",
)
def multipath_tcp(stage, client="IPPROTO_MPTCP"):
    """A client is connected over multipath TCP, as programs in Go are by default, and says nothing for now; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        tell("port", str(listener.getsockname()[1]))
        tell("go/port", "")
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    stage.when_over("person", f"""
        wait_for("port")
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.{client})
        connection.connect(("127.0.0.1", int(open(DIR + "/port").read())))
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """)
    return stage.killed(agent, in_use=["mcp-server-web"])

@scene("in use")
def network_namespace(stage):
    """Server and client live in a network namespace of their own, where the host's view of sockets does not reach; the agent is killed."""
    stage.part("person", """
        here()
        connection = dial("tcp", "mcp-server-web")
        use("person", lambda: ask_over(connection))
    """)
    stage.part("mcp-server-web", """
        own_network()
        in_background(answer_calls, listen("tcp"))
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    server = stage.who("mcp-server-web")
    stage.run("/usr/bin/nsenter", f"--net=/proc/{server.pid}/ns/net", f"{stage.dir}/bin/person")
    stage.beats("person")
    return stage.killed(agent, in_use=[server, "person"])

@scene("in use", twin="orphans/calls_a_database")
def calls_who_listens_once(stage):
    """A server was told to connect to a program that listens for this one call, and asks over it (a debugger); the agent is killed."""
    stage.part("mcp-server-fake", """
        person = dial("tcp", "person")
        def attend():
            while person.recv(100):
                person.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.run(stage.part("claude", 'start("mcp-server-fake")\nhere()\nrest()\n'))
    person = stage.uses("person", """
        listener = listen("tcp")
        connection = listener.accept()[0]
        listener.close()
        use("person", lambda: ask_over(connection))
    """)
    stage.who("claude")
    return stage.killed(agent, in_use=[person, "mcp-server-fake"])

@scene("in use", twin="orphans/calls_another_host")
def called_from_another_host(stage):
    """A client on another host is connected to a server that takes no more calls, at a port that is nobody's usual one; the agent is killed."""
    stage.part("mcp-server-fake", """
        in_background(answer_calls, socket.create_server(("192.0.2.7", 8123)), "client", True)
        serve()
    """)
    stage.part("claude", 'start("mcp-server-fake")\nhere()\nrest()\n')
    stage.part("person", """
        present("mcp-server-fake")
        connection = reach(("192.0.2.7", 8123))
        here()
        use("person", lambda: ask_over(connection))
    """)
    desk = stage.run(stage.part("desk", """
        network_of_two_hosts()
        start("claude", wire=None)
        start("person", wire=None)
        rest()
    """))
    stage.beats("person")
    return stage.killed(stage.who("claude"), in_use=[desk, "person", "mcp-server-fake"])

@scene("in use", twin="orphans/silent_listener")
def sequenced_packets(stage):
    """A client is connected by a unix socket of sequenced packets without a name in a folder; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind("\\0" + DIR)
        listener.listen()
        tell("go/port", "")
        in_background(answer_calls, listener)
        serve()
    """)
    agent = stage.agent("mcp-server-web")
    person = stage.when_over("person", """
        wait_for("port")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect("\\0" + DIR)
        ask_over(connection)
        on_call("person", lambda: ask_over(connection))
    """)
    return stage.killed(agent, in_use=["mcp-server-web"])

def connects_back(stage, kind):
    """An agent with a server that connects its socket of this kind to whoever asks first."""
    stage.part("mcp-server-fake", f"""
        sock = listen("{kind}")
        def attend():
            _, sender = sock.recvfrom(100)
            sock.connect(sender)
            sock.send(b"pong")
            while True:
                sock.recv(100)
                sock.send(b"pong")
        in_background(attend)
        serve()
    """)
    return stage.agent()

@scene("in use")
@scene(
    "in use", name="unix_datagrams_connected", kind="datagram",
    about="The server answers datagrams on a unix socket that it connected to its one client; the agent is killed.",
)
def udp_connected(stage, kind="udp"):
    """The server answers over UDP and connected its socket to its one client; the agent is killed."""
    agent = connects_back(stage, kind)
    person = stage.client(kind, "mcp-server-fake")
    return stage.killed(agent, in_use=[person, "mcp-server-fake"])

@scene("in use", twin="orphans/reports_over_udp")
def udp_connected_to_an_open_socket(stage):
    """The server answers over UDP and connected its socket to its one client, whose own is open to everybody; the agent is killed."""
    agent = connects_back(stage, "udp")
    person = stage.uses("person", """
        server = dial("udp", "mcp-server-fake").getpeername()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.settimeout(TIMEOUT)
        def ask():
            sock.sendto(b"ping", server)
            if sock.recvfrom(100)[0] != b"pong":
                raise EOFError("no answer")
        use("person", ask)
    """)
    return stage.killed(agent, in_use=[person, "mcp-server-fake"])

@scene("in use", twin="orphans/reports_over_udp")
def udp_port_of_its_choice(stage):
    """The server answers over UDP, at all addresses and a port of its choice, as a VPN does: the system might give that out; the agent is killed."""
    stage.part("mcp-server-fake", """
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            ports = range(*map(int, f.read().split()))
        # Situations go on side by side.
        for port in ports[os.getpid() % 1000:]:
            try:
                sock.bind(("0.0.0.0", port))
                break
            except OSError:
                pass
        tell("go/mcp-server-fake.udp", str(port))
        in_background(answer_calls, sock)
        serve()
    """)
    agent = stage.agent()
    person = stage.when_over("person", """
        def ask():
            with dial("udp", "mcp-server-fake") as server:
                ask_over(server)
        ask()
        on_call("person", ask)
    """)
    return stage.killed(agent, in_use=[person, "mcp-server-fake"])

@scene("in use", twin="orphans/silent_listener")
def unix_socket(stage):
    """Two clients share a broker over its unix socket; the agent that started it is killed."""
    stage.listens("mcp-broker", "unix")
    agent = stage.rests("claude", 'start("mcp-broker", wire="socket")')
    person = stage.part("person", """
        connection = dial("unix", "mcp-broker")
        use(ALIAS, lambda: ask_over(connection))
    """)
    for alias in ("one", "two"):
        stage.run(person, "--as", alias)
        stage.beats(alias)
    return stage.killed(agent, in_use=["mcp-broker"])

@scene("in use", twin="orphans/silent_listener")
def virtual_machine(stage):
    """A server listens on a vsock, for virtual machines; the agent is killed."""
    stage.part("mcp-server-web", """
        listener = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
        listener.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
        listener.listen()
        in_background(answer_calls, listener)
        serve()
    """)
    return stage.killed(stage.agent("mcp-server-web"), in_use=["mcp-server-web"])

@scene("in use")
def wire_is_a_connection(stage):
    """A super-server (inetd, socat) starts a server right on the connection of its client; the super-server is killed."""
    inetd = stage.run(stage.part("supersrv.py", """
        door = listen("tcp")
        call = door.accept()[0]
        start("mcp-server-fake", wire=None, stdin=call, stdout=call)
        call.close()
        here()
        rest()
    """))
    stage.uses("person", """
        connection = dial("tcp", "supersrv.py")
        wire = connection.fileno()
        server = Server(wire, wire)
        use("person", server.ask)
    """)
    return stage.killed(inetd, in_use=["mcp-server-fake"])

@scene("in use", twin="orphans/calls_a_database")
def peer_that_listens_where_it_calls_from(stage):
    """A client calls from the port at which it listens itself, as peers do; the server has closed its listener; the agent is killed."""
    port = next(port for port in range(20000 + os.getpid() % 9000, 32000) if is_free(port))
    stage.part("mcp-server-peer", f"""
        listener = socket.create_server(("127.0.0.1", {port}))
        tell("go/listens", "")
        def attend():
            peer = listener.accept()[0]
            listener.close()
            while peer.recv(100):
                peer.sendall(b"pong")
        in_background(attend)
        serve()
    """)
    agent = stage.agent("mcp-server-peer")
    person = stage.uses("person", f"""
        wait_for("listens")
        def end(port):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind(("127.0.0.1", port))
            return sock
        own = end(0)
        own.listen()
        peer = end(own.getsockname()[1])
        peer.connect(("127.0.0.1", {port}))
        use("person", lambda: ask_over(peer))
    """)
    return stage.killed(agent, in_use=[person, "mcp-server-peer"])


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
