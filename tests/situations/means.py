"""Less usual means of the processes of a situation: descriptors on their way, sockets of all kinds, tracers."""
import array
import ctypes
import fcntl
import mmap
import os
import select
import struct
import time

from part import ALIAS, DIR, TIMEOUT, socket, tell, threading

libc = ctypes.CDLL(None, use_errno=True)

CLONE_FILES, CLONE_NEWNS, CLONE_NEWNET = 0x400, 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
TIOCGPTN, TIOCSPTLCK = 0x80045430, 0x40045431
PTRACE_SEIZE = 0x4206
PIDFD_GETFD = 438
IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER = 425, 426, 427
OP_READ, OP_WRITE, FIXED_FILE, GETEVENTS = 22, 23, 1, 1


def checked(result, what):
    """A system call's result, as an exception if it failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


# ---- descriptors on their way --------------------------------------------------------------------------------


def send_fds(sock, *fds):
    """Put descriptors into a unix socket."""
    sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def receive_fds(sock, count):
    """Take descriptors out of a unix socket."""
    fds = array.array("i")
    for level, kind, content in sock.recvmsg(1, socket.CMSG_LEN(count * 4))[1]:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content)
    return list(fds)


def in_own_table(act, *closed):
    """Run `act` in a thread with a descriptor table of its own, and close these descriptors in everybody else's."""
    ready = threading.Event()

    def thread():
        checked(libc.unshare(CLONE_FILES), "unshare")
        ready.set()
        act()

    threading.Thread(target=thread, daemon=True).start()
    ready.wait()
    for fd in closed:
        os.close(fd)


def steal_fd(pid, fd):
    """A duplicate of another process's descriptor."""
    pidfd = os.pidfd_open(pid)
    return checked(libc.syscall(PIDFD_GETFD, pidfd, fd, 0), "pidfd_getfd")


class Ring:
    """An io_uring that holds one registered file: the descriptor itself is closed."""

    def __init__(self, fd):
        parameters = (ctypes.c_uint32 * 30)()
        self.ring = checked(libc.syscall(IO_URING_SETUP, 4, parameters), "io_uring_setup")
        p = list(parameters)
        # struct io_uring_params: sq_off begins at word 10, cq_off at word 20.
        self.tail, self.mask, self.array, self.done_head, self.done_tail = p[11], p[12], p[16], p[20], p[21]
        self.sq = mmap.mmap(self.ring, self.array + 4 * p[0], offset=0)
        self.sqes = mmap.mmap(self.ring, 64 * p[0], offset=0x10000000)
        self.cq = mmap.mmap(self.ring, p[25] + 16 * p[1], offset=0x8000000)
        checked(libc.syscall(IO_URING_REGISTER, self.ring, 2, (ctypes.c_int32 * 1)(fd), 1), "io_uring_register")
        os.close(fd)

    def write(self, data):
        """Write through the registered file."""
        self._do(OP_WRITE, ctypes.create_string_buffer(data, len(data)))

    def read(self, most):
        """Read through the registered file."""
        buffer = ctypes.create_string_buffer(most)
        self._do(OP_READ, buffer)
        return buffer.raw

    def _do(self, op, buffer):
        tail, = struct.unpack_from("I", self.sq, self.tail)
        slot = tail & struct.unpack_from("I", self.sq, self.mask)[0]
        entry = struct.pack("BBHiQQI", op, FIXED_FILE, 0, 0, 2**64 - 1, ctypes.addressof(buffer), len(buffer))
        self.sqes[slot * 64:slot * 64 + 64] = entry.ljust(64, b"\0")
        struct.pack_into("I", self.sq, self.array + 4 * slot, slot)
        struct.pack_into("I", self.sq, self.tail, tail + 1)
        checked(libc.syscall(IO_URING_ENTER, self.ring, 1, 1, GETEVENTS, None, 0), "io_uring_enter")
        # What is done is taken off the queue, else it would be full after a few.
        self.cq[self.done_head:self.done_head + 4] = self.cq[self.done_tail:self.done_tail + 4]


def trace(tid):
    """Attach to a thread as a debugger does, without stopping it."""
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    checked(libc.ptrace(PTRACE_SEIZE, tid, None, None), "ptrace")


# ---- sockets -------------------------------------------------------------------------------------------------

FAMILIES = {"tcp": socket.AF_INET, "tcp6": socket.AF_INET6, "udp": socket.AF_INET}


def listen(kind, name=None):
    """A socket that takes calls, of the kind `tcp`, `tcp6`, `udp`, `unix`, `abstract` or `datagram`; its address is told."""
    name = name or ALIAS
    sock = socket.socket(FAMILIES.get(kind, socket.AF_UNIX), socket.SOCK_DGRAM if kind in ("udp", "datagram") else socket.SOCK_STREAM)
    if kind in FAMILIES:
        sock.bind(("::1" if kind == "tcp6" else "127.0.0.1", 0))
        address = str(sock.getsockname()[1])
    else:
        address = ("@" if kind == "abstract" else "") + f"{DIR}/{name}.s"
        sock.bind(address.replace("@", "\0"))
        if kind != "abstract":
            os.chmod(address, 0o777)
    if sock.type == socket.SOCK_STREAM:
        sock.listen(32)
    tell(f"go/{name}.{kind}", address)
    return sock


def answer_calls(sock, closes="client", once=False):
    """Answer whoever calls, for ever; who closes first (`client`, `server`) keeps TIME_WAIT. `once`: the listener is closed after
    the first call, which goes on."""
    if sock.type == socket.SOCK_DGRAM:
        while True:
            _, sender = sock.recvfrom(100)
            sock.sendto(b"pong", sender)

    def attend(call):
        with call:
            while call.recv(100):
                call.sendall(b"pong")
                if closes == "server":
                    return

    while True:
        call = sock.accept()[0]
        threading.Thread(target=attend, args=[call], daemon=True).start()
        if once:
            sock.close()
            return


def in_background(act, *args, **keywords):
    """Do it in a thread of this process."""
    threading.Thread(target=act, args=args, kwargs=keywords, daemon=True).start()


def rest_in_a_thread():
    """Do nothing for ever; signals are the leader's."""
    threading.Event().wait()


def dial(kind, name, port=0):
    """A connection to who listens under this name, from this port."""
    while not os.path.exists(f"{DIR}/go/{name}.{kind}"):
        time.sleep(0.02)
    with open(f"{DIR}/go/{name}.{kind}") as f:
        address = f.read()
    sock = socket.socket(FAMILIES.get(kind, socket.AF_UNIX), socket.SOCK_DGRAM if kind in ("udp", "datagram") else socket.SOCK_STREAM)
    sock.settimeout(TIMEOUT)
    if kind == "datagram":
        sock.bind(f"{DIR}/{ALIAS}.{os.getpid()}.s")
    if port:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
    if kind in FAMILIES:
        sock.connect(("::1" if kind == "tcp6" else "127.0.0.1", int(address)))
    else:
        sock.connect(address.replace("@", "\0"))
    return sock


def ask_over(sock):
    """One request on a connection."""
    sock.sendall(b"ping")
    if sock.recv(100) != b"pong":
        raise EOFError("hung up")


def seeks_port_of(name):
    """Try to have the port of who listens under this name, as a second server of the kind does."""
    while not os.path.exists(f"{DIR}/go/{name}.tcp"):
        time.sleep(0.02)
    with open(f"{DIR}/go/{name}.tcp") as f:
        port = int(f.read())
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return
    raise RuntimeError(f"nobody has the port {port}")


def call(kind, name, closes="client"):
    """A short connection: one request, then it is closed."""
    with dial(kind, name) as sock:
        ask_over(sock)
        if closes == "server":
            select.select([sock], [], [], TIMEOUT)


def call_from(name, port):
    """A short connection over TCP from this port, which is free at once, since the connection is reset."""
    with dial("tcp", name, port) as sock:
        ask_over(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def own_mounts():
    """Move to a mount namespace of our own, whose mounts nobody else sees."""
    checked(libc.unshare(CLONE_NEWNS), "unshare")
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")


def terminal_elsewhere(path):
    """Move to a terminal of the same number in a devpts of our own, as in a container. Returns its other side."""
    own_mounts()
    checked(libc.mount(b"devpts", b"/mnt", b"devpts", 0, b"newinstance,ptmxmode=0666"), "a devpts of our own")
    before = []
    while True:
        master = os.open("/mnt/ptmx", os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 0))
        number = struct.unpack("i", fcntl.ioctl(master, TIOCGPTN, bytes(4)))[0]
        if path.endswith(f"/{number}"):
            break
        before.append(master)
    os.setsid()
    # A leader of a session without a terminal gets this one.
    os.open(f"/mnt/{number}", os.O_RDWR)
    return master


def own_network():
    """Move to a network namespace of our own, with a loopback interface that is up."""
    checked(libc.unshare(CLONE_NEWNET), "unshare")
    with socket.socket() as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


def reach(address):
    """A connection to who listens there, as soon as somebody does."""
    while True:
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.02)


def network_of_two_hosts():
    """Move to a network in which all of 192.0.2.0/24 (RFC 5737) is reached, and no address of it is ours: another host, to all who look."""
    own_network()
    # RTM_NEWROUTE, ip-route(8): `local 192.0.2.0/24 dev lo`.
    route = struct.pack("=8BI", socket.AF_INET, 24, 0, 0, 255, 3, 254, 2, 0)
    route += struct.pack("=HH4s", 8, 1, socket.inet_aton("192.0.2.0")) + struct.pack("=HHI", 8, 4, socket.if_nametoindex("lo"))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.sendall(struct.pack("=IHHII", 16 + len(route), 24, 0x405, 1, 0) + route)
        checked(struct.unpack_from("=i", sock.recv(4096), 16)[0], "route")
