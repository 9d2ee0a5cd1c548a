"""The server serves a file system (FUSE) that a person has mounted and uses; the agent is killed."""

TRUTH = "in use"


def build(stage):
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
    stage.part("claude", """
        start("mcp-server-fake")
        here()
        rest()
    """)
    stage.part("person", """
        count = 0
        def look():
            global count
            count += 1
            try:
                os.stat(f"{DIR}/mnt/{count}")
            except FileNotFoundError:
                pass
        wait_for("mnt")
        here()
        use("person", look)
    """)
    desk = stage.run(stage.part("desk", """
        checked(libc.unshare(0x20000), "unshare")
        checked(libc.mount(b"none", b"/", None, 0x44000, None), "private")
        start("claude", wire=None)
        start("person", wire=None)
        rest()
    """))
    agent = stage.who("claude")
    stage.beats("person")
    agent.kill()
    return stage.truth(in_use=[desk, stage.who("person"), stage.who("mcp-server-fake")])
