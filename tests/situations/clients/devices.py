from situation import scene

@scene("in use", name="file_system", about="The server serves a file system (FUSE) that a person has mounted and uses; the agent is killed.")
@scene("in use", name="file_system_from_a_chroot", about="The same, and the server is in a chroot, with a /dev of its own there.", root="/root")
def file_system(stage, root=""):
    stage.part("mcp-server-fake", """
        fuse = os.open("/dev/fuse", os.O_RDWR)
        os.makedirs(f"{DIR}/mnt", exist_ok=True)
        libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
        checked(libc.mount(b"fake", f"{DIR}/mnt".encode(), b"fuse", 0, f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()), "mount")
        def attend():
            while True:
                request = os.read(fuse, 1 << 20)
                length, opcode, unique = struct.unpack_from("IIQ", request)
                if opcode == 26:
                    body = struct.pack("IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 10, 65536, 1, 0, 0, 0, *[0] * 7)
                    error = 0
                elif opcode in (2, 36):
                    continue
                else:
                    body, error = b"", -2 if opcode == 1 else -38
                os.write(fuse, struct.pack("IiQ", 16 + len(body), error, unique) + body)
        in_background(attend)
        tell("go/mnt", "")
        serve()
    """)
    stage.part("claude", f"""
        start("/usr/sbin/chroot", f"{{DIR}}{root}", f"{{BIN}}/mcp-server-fake")
        here()
        rest()
    """ if root else 'start("mcp-server-fake")\nhere()\nrest()\n')
    stage.part("person", f"""
        count = 0
        def look():
            global count
            count += 1
            try:
                os.stat(f"{{DIR}}{root and root + stage.dir}/mnt/{{count}}")
            except FileNotFoundError:
                pass
        wait_for("mnt")
        here()
        use("person", look)
    """)
    desk = stage.run(stage.part("desk", """
        own_mounts()
        os.makedirs(f"{DIR}/root")
        checked(libc.mount(b"/", f"{DIR}/root".encode(), None, MS_BIND | MS_REC, None), "bind")
        start("claude", wire=None)
        start("person", wire=None)
        rest()
    """))
    agent = stage.who("claude")
    stage.beats("person")
    return stage.killed(agent, in_use=[desk, "person", "mcp-server-fake"])

@scene("in use", twin="clients/file_system")
def network_device(stage):
    """A server is the other end of a network device (TUN), as a VPN's is; a person's traffic goes through it; the agent is killed."""
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
    return stage.killed(agent, in_use=["person", "mcp-server-vpn"])
