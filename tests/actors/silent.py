"""A file system that never answers the close of a file, and what another user does with it. Whoever runs another program with that
file open is stuck in execve(2) as long as this process lives.

silent.py FOLDER UID stuck COUNT     so many processes of the user are stuck
silent.py FOLDER UID run PROGRAM..   the program runs as the user; the file is FOLDER/mount/file
silent.py FOLDER UID root PROGRAM.. the same, and only root waits: for the answer to the close, and for the file's attributes
silent.py FOLDER UID slow COUNT MS   so many processes of the user run themselves again and again, and each time the close of
                                     the file is answered after so many milliseconds
The numbers of those that are stuck are lines of FOLDER/stuck.
"""

import ctypes
import os
import queue
import struct
import sys
import threading
import time

INIT, LOOKUP, FORGET, GETATTR, OPEN, RELEASE, FLUSH = 26, 1, 2, 3, 14, 18, 25
INTERRUPT, OPENDIR, RELEASEDIR, BATCH_FORGET = 36, 27, 29, 42
REGULAR, DIRECTORY = 0o100644, 0o40755
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000

folder, uid, mode, *rest = sys.argv[1:]
uid = int(uid)
place = folder + "/mount"
valid = 0 if mode == "root" else 1000
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount():
    """The mount is seen by this process and its children only, and gone with them."""
    os.makedirs(place, exist_ok=True)
    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "make the mounts private")
    connection = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={connection},rootmode=40000,user_id=0,group_id=0,allow_other"
    check(libc.mount(b"silent", place.encode(), b"fuse", 0, options.encode()), "mount")
    return connection


def attributes(node):
    return struct.pack("<6Q10I", node, *[0] * 8, DIRECTORY if node == 1 else REGULAR, 1, 0, 0, 0, 4096, 0)


def body(kind, node):
    """What is answered, <linux/fuse.h>; nothing where the kernel waits for no answer, or waits in vain."""
    if kind == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 32, 0, *[0] * 8)
    if kind == LOOKUP:
        return struct.pack("<4Q2I", 2, 0, 1000, valid, 0, 0) + attributes(2)
    if kind == GETATTR:
        return struct.pack("<Q2I", valid, 0, 0) + attributes(node)
    if kind in (OPEN, OPENDIR):
        return struct.pack("<Q2I", 1, 0, 0)
    return b"" if kind in (RELEASE, RELEASEDIR, FLUSH) else None


def answer_late(connection, closes):
    """All are delayed by the same time."""
    while True:
        due, unique = closes.get()
        time.sleep(max(0, due - time.monotonic()))
        try:
            os.write(connection, struct.pack("<IiQ", 16, 0, unique))
        except FileNotFoundError:
            continue


def serve(connection):
    closes = queue.Queue()
    threading.Thread(target=answer_late, args=(connection, closes), daemon=True).start()
    with open(folder + "/stuck", "a", buffering=1) as stuck:
        while True:
            try:
                request = os.read(connection, 1 << 18)
            except FileNotFoundError:
                continue
            _, kind, unique, node, who, _, pid = struct.unpack_from("<2I2Q3I", request)
            if (who == 0 and kind in (FLUSH, GETATTR)) if mode == "root" else kind == FLUSH:
                print(pid, file=stuck)
                if mode == "slow":
                    closes.put((time.monotonic() + int(rest[1]) / 1000, unique))
                continue
            answer = body(kind, node)
            if answer is not None:
                os.write(connection, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
            elif kind not in (FORGET, INTERRUPT, BATCH_FORGET):
                os.write(connection, struct.pack("<IiQ", 16, -38, unique))


def child(connection):
    os.close(connection)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if mode in ("stuck", "slow"):
        for _ in range(int(rest[0]) - 1):
            if os.fork() == 0:
                break
        if mode == "slow":
            again = f"open(F, '<', '{place}/file'); exec($^X, '-e', $ARGV[0], $ARGV[0])"
            os.execv("/usr/bin/perl", ["perl", "-e", again, again])
        os.open(place + "/file", os.O_RDONLY)
        os.execv("/bin/sleep", ["sleep", "600"])
    os.execv(rest[0], rest)


connection = mount()
if os.fork() == 0:
    child(connection)
serve(connection)
