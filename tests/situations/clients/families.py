"""Sockets by which a server is asked, and that no table of connections lists."""
from textwrap import dedent
from situation import scene

# Each begins with a socket of the kind; `place` is where it is asked, and `ping` what.
KINDS = {
    "raw": """
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, 253)
        place, ping = ("127.0.0.1", 0), b"ping"
    """,
    "packet": """
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x88b5))
        sock.bind(("lo", 0x88b5))
        place, ping = ("lo", 0x88b5, 0, 0, bytes(6)), b"ping"
    """,
    "netlink": """
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)
        sock.bind((0, 0))
        if ALIAS != "person":
            tell("go/place", str(sock.getsockname()[0]))
        else:
            wait_for("place")
            with open(f"{DIR}/go/place") as f:
                place = int(f.read()), 0
            ping = struct.pack("IHHII", 20, 32, 0, 1, sock.getsockname()[0]) + b"ping"
    """,
}

@scene("in use", name="own_protocol", twin="orphans/silent_listener", about="The server is asked over a raw socket, by a protocol of its own; the agent is killed.", kind="raw")
@scene("in use", name="packets", twin="orphans/silent_listener", about="The server is asked by packets of the network, as one for DHCP is; the agent is killed.", kind="packet")
@scene("in use", name="netlink_between_programs", twin="orphans/silent_listener", about="The server is asked over a netlink socket, which programs may use among themselves; the agent is killed.", kind="netlink")
def family(stage, kind):
    stage.part("mcp-server-fake", dedent(KINDS[kind]) + dedent("""
        def attend():
            while True:
                data, sender = sock.recvfrom(100)
                if b"ping" in data:
                    sock.sendto(data.replace(b"ping", b"pong"), sender)
        in_background(attend)
        serve()
    """))
    # What was sent over the loopback comes back to who sent it, too.
    person = dedent(KINDS[kind]) + dedent("""
        sock.settimeout(TIMEOUT)
        def ask():
            sock.sendto(ping, place)
            while b"pong" not in sock.recv(100):
                pass
        ask()
        on_call("person", ask)
    """)
    own = dedent("""
        own_network()
        start("claude", wire=None)
        present("mcp-server-fake")
        person = start("person", wire=None)
        here("person", person.pid)
        rest()
    """)
    stage.part("claude", 'start("mcp-server-fake")\nhere()\nrest()\n')
    stage.part("person", person)
    stage.run(stage.part("desk", own))
    agent = stage.who("claude")
    stage.when_called("person", stage.who("person"))
    return stage.killed(agent, in_use=["mcp-server-fake"])
