"""A server is the other end of a network device (TUN), as a VPN's is; a person's traffic goes through it; the agent is killed."""

TRUTH = "in use"
TWIN = "clients/file_system"


def build(stage):
    stage.part("mcp-server-vpn", """
        tun = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"vpn0", 0x1001))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            at = socket.inet_aton("10.9.0.1")
            fcntl.ioctl(sock, 0x8916, struct.pack("16sHH4s8x", b"vpn0", 2, 0, at))
            fcntl.ioctl(sock, 0x891c, struct.pack("16sHH4s8x", b"vpn0", 2, 0, bytes([255, 255, 255, 0])))
            fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH22x", b"vpn0", IFF_UP))
        def attend():
            while True:
                packet = os.read(tun, 2048)
                if packet[0] == 0x45 and packet[9] == 17:
                    # The answer is the same datagram, sent back.
                    os.write(tun, packet[:12] + packet[16:20] + packet[12:16] + packet[22:24] + packet[20:22] + packet[24:])
        in_background(attend)
        tell("go/vpn", "")
        serve()
    """)
    stage.part("claude", """
        start("mcp-server-vpn")
        here()
        rest()
    """)
    stage.part("person", """
        wait_for("vpn")
        here()
        def ask():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.settimeout(TIMEOUT)
                sock.sendto(b"ping", ("10.9.0.2", 7))
                if sock.recv(100) != b"ping":
                    raise EOFError("no answer")
        use("person", ask)
    """)
    stage.run(stage.part("desk", """
        own_network()
        start("claude", wire=None)
        start("person", wire=None)
        rest()
    """))
    agent = stage.who("claude")
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[stage.who("person"), stage.who("mcp-server-vpn")])
