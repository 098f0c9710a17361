# A program of a box that takes over a "boxd join". It traces the next process that comes from
# outside the container. That is possible for a moment: exec has made the process dumpable, and the
# process has not changed that yet. It has that process execute this script, which then comes from
# outside, and holds the client's streams. For amd64.
#
#   hijack.py wait HOW BOX    take over the next join
#   hijack.py kill HOW BOX    kill the running join, so that its client connects again, and take
#                             over the next
#   hijack.py HOW BOX         be the join: it executes this
#
# HOW is "door" (let programs of the box speak to boxd from outside), "server" (answer the client
# as an SSH server) or "words" (print what the client may take for a message of boxd).
import ctypes
import os
import signal
import socket
import struct
import sys
import time

SEIZE, INTERRUPT, GETREGS, SETREGS, DETACH = 0x4206, 0x4207, 12, 13, 17
RAX, RDX, RSI, RDI, ORIG_RAX, RIP = 10, 12, 13, 14, 15, 16  # of user_regs_struct
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def from_outside():
    """Returns the processes that come from outside: their parent is not in the container."""
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and open("/proc/%s/stat" % p).read().rsplit(")")[-1].split()[1] == "0":
                yield int(p)
        except OSError:
            pass


def seize(pid):
    """Traces pid, and reports whether it does. It kills a process that cannot be traced, so that
    the client starts another."""
    end = time.monotonic() + 1
    while libc.ptrace(SEIZE, pid, None, None):
        if not os.path.exists("/proc/%d" % pid):
            return False
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            return False
    return True


def execute(pid, args):
    """Has a traced process execute a program."""
    libc.ptrace(INTERRUPT, pid, None, None)
    os.waitpid(pid, 0x40000000)  # __WALL
    maps = [line.split() for line in open("/proc/%d/maps" % pid)]
    begin = lambda line: int(line[0].split("-")[0], 16)
    text = next(begin(m) for m in maps if m[1] == "r-xp")
    stack = next(begin(m) for m in maps if m[-1] == "[stack]")  # the unused end of the stack
    data, at = b"", []
    for arg in args:
        at.append(stack + len(data))
        data += arg.encode() + b"\0"
    data += b"\0" * (-len(data) % 8)
    argv = stack + len(data)
    data += struct.pack("%dQ" % (len(at) + 1), *at, 0)
    with open("/proc/%d/mem" % pid, "r+b", 0) as mem:
        mem.seek(text)
        syscall = text + mem.read(1 << 20).index(b"\x0f\x05")
        mem.seek(stack)
        mem.write(data)
    regs = (ctypes.c_ulong * 27)()
    libc.ptrace(GETREGS, pid, None, regs)
    regs[RAX], regs[ORIG_RAX], regs[RIP] = 59, 2**64 - 1, syscall  # execve
    regs[RDI], regs[RSI], regs[RDX] = at[0], argv, 0
    libc.ptrace(SETREGS, pid, None, regs)
    libc.ptrace(DETACH, pid, None, None)


def door(box):
    """Passes each client of the socket /tmp/door on to boxd, as if it came from outside."""
    os.write(1, b"x" * 300)  # this is not SSH: the client disconnects, and tries again
    came = socket.socket(socket.AF_UNIX)
    came.bind("/tmp/door")
    came.listen()
    errors = os.open("/dev/null", os.O_WRONLY)
    kept = []
    while True:
        c, _ = came.accept()
        boxd = socket.socket(socket.AF_UNIX)
        boxd.connect("\0sandshell-" + box)
        socket.send_fds(boxd, [b"\0"], [c.fileno(), c.fileno(), errors])
        c.close()
        kept.append(boxd)


how, box = sys.argv[-2:]
if len(sys.argv) == 4:
    known = {1, *from_outside()}
    if sys.argv[1] == "kill":
        for pid in known - {1}:
            os.kill(pid, signal.SIGKILL)
    print("waits", flush=True)
    pid = 0
    while not pid or not seize(pid):
        if pid:
            known.add(pid)
        pid = next((p for p in from_outside() if p not in known), 0)
    execute(pid, [sys.executable, __file__, how, box])
    print("traced", flush=True)
    sys.exit()
with open("/tmp/came", "w") as f:
    f.write("parent %d\n" % os.getppid())
if how == "door":
    door(box)
elif how == "server":  # another SSH server answers the client
    os.execv("/usr/sbin/sshd", ["/usr/sbin/sshd", "-i", "-f", "/dev/null", "-h",
                                "/tmp/hostkey", "-E", "/tmp/log",
                                "-o", "LogLevel=DEBUG1"])
else:  # print what a client may take for a message of boxd
    sys.exit("ssh: unable to authenticate")
