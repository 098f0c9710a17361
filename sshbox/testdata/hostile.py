# A hostile file server. Without arguments it is a subsystem of an sshd, and HOSTILE is its mode.
# With two arguments, a mode and the name of a program of boxd, it takes over the streams of that
# program, as any program of the same user may try to: it opens them or, if it may trace the
# program, has the kernel copy them.
import ctypes
import glob
import os
import signal
import struct
import sys

mode = os.environ.get("HOSTILE") or sys.argv[1]
source, sink = 0, 1


def second(cmdline):
    """Returns the first argument of a program, or b"" if the program has ended."""
    try:
        return (open(cmdline, "rb").read().split(b"\0") + [b""])[1]
    except OSError:
        return b""


def take(pid, fd, mode):
    """Returns a descriptor for a stream of another process, or -1."""
    try:
        return os.open("/proc/%d/fd/%d" % (pid, fd), mode)
    except OSError as e:
        print("open:", e.strerror, flush=True)
    libc = ctypes.CDLL(None, use_errno=True)
    got = libc.syscall(438, os.pidfd_open(pid), fd, 0)  # pidfd_getfd
    if got < 0:
        print("pidfd_getfd:", os.strerror(ctypes.get_errno()), flush=True)
    return got


if len(sys.argv) > 2:
    found = []
    while not found:
        found = [p for p in glob.glob("/proc/[0-9]*/cmdline") if second(p) == sys.argv[2].encode()]
    pid = int(found[0].split("/")[2])
    sink, source = take(pid, 1, os.O_WRONLY), take(pid, 0, os.O_RDONLY)
    if sink < 0 or source < 0:
        print("refused", flush=True)
        sys.exit()
    os.kill(pid, signal.SIGSTOP)
    print("stopped", pid, flush=True)


def write(b):
    while b:
        b = b[os.write(sink, b):]


if mode == "line":
    write(b'{"Events":[{"Name":"')
    while True:
        write(b"A" * 65536)


def read(n):
    b = b""
    while len(b) < n:
        piece = os.read(source, n - len(b))
        if not piece:
            sys.exit()
        b += piece
    return b


def send(kind, rest):
    write(struct.pack(">IB", len(rest) + 1, kind) + rest)


def text(b):
    return struct.pack(">I", len(b)) + b


SIZES = {"size": 2**64 - 2, "negative": 2**63, "claim": 2**40}
while True:
    length, = struct.unpack(">I", read(4))
    packet = read(length)
    if packet[0] == 1:  # INIT
        send(2, struct.pack(">I", 3))
        continue
    number = packet[1:5]
    if mode == "silent" and packet[0] in (7, 8, 17) or mode == "claim" and packet[0] == 5:
        continue
    if mode == "order":  # answer a request that was not made
        number = struct.pack(">I", struct.unpack(">I", number)[0] + 7)
    if mode == "packet":
        write(struct.pack(">IB", 0xffffffff, 103))
        while True:
            write(b"A" * 65536)
    if packet[0] == 210:  # wire.FileQuestion
        if mode == "message":
            write(struct.pack(">IB", 0xffffffff, 210))
            while True:
                write(b"A" * 65536)
        entry = text(b"a") + struct.pack(">QIIII", 2**64 - 2, 0o100644, 0, 0, 0)
        long, entries = (0, entry * 1000) if mode == "entries" else (1, b"")
        send(210, number + text(b"") + struct.pack(">BBQ", long, 0, 0) + entries)
    elif packet[0] in (7, 8, 17):  # LSTAT, FSTAT, STAT
        kind = 0o040755 if mode in ("list", "short", "pairs") else 0o100644
        send(105, number + struct.pack(">IQI", 5, SIZES.get(mode, 10), kind))
    elif packet[0] in (3, 11):  # OPEN, OPENDIR
        send(102, number + text(b"h"))
    elif packet[0] == 16:  # REALPATH
        send(104, number + struct.pack(">I", 1) + text(b"/root") * 2 + struct.pack(">I", 0))
    elif packet[0] == 5:  # READ, for ever
        send(103, number + text(b"A" * 32768))
    elif packet[0] == 12:  # READDIR, for ever
        if mode == "short":
            entry = text(b"a") + text(b"") + struct.pack(">I", 0)
        elif mode == "pairs":
            entry = text(b"a") + text(b"") + struct.pack(">II", 1 << 31, 20) + text(b"") * 40
        else:
            entry = text(b"A" * 200) * 2 + struct.pack(">IQI", 5, 1, 0o100644)
        count = 250000 // len(entry)
        send(104, number + struct.pack(">I", count) + entry * count)
    else:
        send(101, number + struct.pack(">I", 0) + text(b"") * 2)
