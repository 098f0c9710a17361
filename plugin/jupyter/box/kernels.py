"""The kernels of a box: starting, finding and ending them.

Each has a name and a directory, which its user alone may enter:

    lock             held by who starts or ends the kernel
    alive            held by the kernel's keeper as long as it lives
    kernel.json      which kernel it is, its keeper, and what clients need, with the key that signs messages
    connection.json  the last of it once more, for the kernel, which writes it anew while others might read
    exit.json        how the last one ended
    log              what it printed that is no cell's output

The keeper is a process that waits for the kernel's end and notes how it was.
"""

import fcntl
import glob
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}
START_LIMIT = 120  # seconds

# The name of a Unix socket has at most 107 bytes, on macOS 103.
SOCKET_NAME_MAX = 100


class Failure(Exception):
    """Something to tell the user in one line."""


def box():
    """The box that this process belongs to: its mark, without which of the box's sessions it is."""
    return os.environ.get("SANDSHELL_SESSION", "").split(".")[0]


def writable():
    """The plugin's directory; where that cannot be written, as in a read-only image, one that only the user may enter."""
    if os.access(HERE, os.W_OK):
        return HERE
    directory = "/tmp/sandshell-jupyter-%d" % os.getuid()
    os.makedirs(directory, mode=0o700, exist_ok=True)
    s = os.lstat(directory)  # /tmp is everybody's
    if not stat.S_ISDIR(s.st_mode) or s.st_uid != os.getuid() or s.st_mode & 0o077:
        raise Failure("%s is not a directory that only its user may enter" % directory)
    return directory


def room():
    """The directory of all that belongs to this box: a plugin's directory may serve several."""
    return os.path.join(writable(), "run", box()[:10] or "box")


class Kernel:
    def __init__(self, name):
        self.name = name
        self.dir = os.path.join(room(), name)

    def path(self, name):
        return os.path.join(self.dir, name)

    def open_lock(self, name):
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        return os.open(self.path(name), os.O_RDWR | os.O_CREAT, 0o600)

    def read(self, name):
        try:
            with open(self.path(name)) as f:
                return json.load(f)
        except FileNotFoundError:
            return None

    def write(self, name, value):
        with open(os.open(self.path(name + ".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            json.dump(value, f)
        os.rename(self.path(name + ".new"), self.path(name))

    def running(self):
        """Whether there is a keeper."""
        if not os.path.exists(self.path("alive")):
            return False
        fd = self.open_lock("alive")
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def wait_for_end(self):
        fd = self.open_lock("alive")
        fcntl.flock(fd, fcntl.LOCK_SH)
        os.close(fd)

    def status(self):
        """What the kernel is now; connection only if it runs, exit only if the last one has ended. For who holds the lock."""
        if self.running():
            try:
                self.wait_for_sockets()  # who has started it may have been killed meanwhile
                return self.read("kernel.json")
            except Failure:
                pass  # it has just died
        how, kernel = self.read("exit.json"), self.read("kernel.json")
        if kernel and not how:
            how = {"id": kernel["id"], "code": None}
        return {"exit": how or {}}

    def connect(self, directory=None, fresh=False):
        """Status of the running kernel, started if there is none; if fresh, of a new one."""
        with self.turn("lock"):
            if fresh:
                self.end()
            if not self.running():
                self.start(directory)
            return self.status()

    def stop(self):
        with self.turn("lock"):
            self.end()

    def turn(self, name):
        return Turn(self.open_lock(name))

    def end(self):
        while self.running():
            kernel = self.read("kernel.json")
            if kernel:
                os.kill(kernel["keeper"], signal.SIGUSR1)
                self.wait_for_end()
            else:
                time.sleep(0.005)  # the keeper is just starting

    def start(self, directory):
        if directory and not os.path.isdir(directory):
            raise Failure("the kernel's directory is to be %s, which is none" % directory)
        alive = self.open_lock("alive")
        fcntl.flock(alive, fcntl.LOCK_EX)  # others look at it for a moment
        for name in ("exit.json", "kernel.json", "connection.json"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
        # The keeper must not descend from us, or from a cell's execute_cli: what ends that would
        # end it too.
        if os.fork() == 0:
            try:
                self.spawn(alive, directory)
            finally:
                os._exit(0)
        os.close(alive)
        os.wait()
        self.wait_for_sockets()

    def spawn(self, alive, directory):
        env = dict(os.environ)
        if box():  # not of the session that starts it, whose end would be its own; but of the box
            env["SANDSHELL_SESSION"] = box() + ".jupyter."
        null = open(os.devnull, "r+")
        subprocess.Popen(
            [sys.executable, os.path.join(HERE, "execute_cli.py"), "--keep", str(alive), "--kernel", self.name],
            stdin=null, stdout=null, stderr=open(self.path("log"), "wb"), env=env, cwd=directory,
            pass_fds=[alive], start_new_session=True,
        )

    def wait_for_sockets(self):
        """Returns when the kernel listens. It looks often: there is nothing that would tell."""
        waiting = {"shell_port", "iopub_port", "stdin_port", "control_port"}
        limit = time.monotonic() + START_LIMIT
        while waiting:
            if not self.running():
                how = self.read("exit.json") or {}
                raise Failure("the kernel does not start: %s" % (how.get("log", "").strip() or describe(how)))
            if time.monotonic() > limit:
                self.end()
                raise Failure("the kernel does not start: it listens to nobody after %d s" % START_LIMIT)
            kernel = self.read("kernel.json")
            waiting = {port for port in waiting if not kernel or not listens(kernel["connection"], port)}
            if waiting:
                time.sleep(0.005)

    def keep(self):
        """Runs the kernel, as its keeper, until it has ended."""
        ends = {signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        sockets = os.path.join(self.dir, "s")
        elsewhere = None
        if len(os.fsencode(sockets)) + 2 > SOCKET_NAME_MAX:
            elsewhere = tempfile.mkdtemp(prefix="sandshell-", dir="/tmp")
            sockets = os.path.join(elsewhere, "s")
        connection = dict(PORTS, transport="ipc", ip=sockets, key=os.urandom(32).hex(), signature_scheme="hmac-sha256", kernel_name="")
        self.write("connection.json", connection)
        self.write("kernel.json", {"id": os.urandom(8).hex(), "keeper": os.getpid(), "connection": connection})
        before = out_of_memory_kills()
        asked = []  # signals that were to end it

        def end(number, frame):
            asked.append(number)
            kill(kernel.pid)

        kernel = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "kernel.py"), "-f", self.path("connection.json"),
             # What it knows of a cell while it runs, not what jedi makes of the text, with a cache
             # in the user's home.
             "--IPCompleter.use_jedi=False", "--HistoryManager.hist_file=:memory:"],
            stdin=subprocess.DEVNULL, stdout=2, env=environment(), start_new_session=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, ends),
        )
        for number in ends:
            signal.signal(number, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        code = kernel.wait()
        kill(kernel.pid)  # its children
        if elsewhere:
            shutil.rmtree(elsewhere, ignore_errors=True)
        if signal.SIGTERM in asked or signal.SIGHUP in asked:  # the box is being closed
            shutil.rmtree(self.dir, ignore_errors=True)
            return
        for name in glob.glob(glob.escape(sockets) + "-*"):
            os.remove(name)
        self.write("exit.json", {
            "id": self.read("kernel.json")["id"],
            "code": code if code >= 0 else 128 - code,
            "stopped": bool(asked),
            "out_of_memory": code == -signal.SIGKILL and out_of_memory_kills() > before,
            "log": tail(self.path("log")),
        })


class Turn:
    """Holds a lock."""

    def __init__(self, fd):
        self.fd = fd

    def __enter__(self):
        fcntl.flock(self.fd, fcntl.LOCK_EX)

    def __exit__(self, *error):
        os.close(self.fd)


def environment():
    """What keeps IPython and matplotlib out of the user's home."""
    env = dict(os.environ)
    dirs = {"IPYTHONDIR": "ipython", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    if os.path.isdir(os.path.join(HERE, "cache")) or writable() != HERE:
        dirs.update({"MPLCONFIGDIR": "matplotlib", "XDG_CACHE_HOME": "cache"})
    env.update({name: os.path.join(writable(), d) for name, d in dirs.items()})
    env["JPY_PARENT_PID"] = str(os.getpid())  # a kernel without a keeper ends itself
    return env


def listens(connection, port):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect("%s-%d" % (connection["ip"], connection[port]))
    except OSError:
        return False
    finally:
        s.close()
    return True


def kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def out_of_memory_kills():
    """How many processes of this cgroup were killed because its memory was full; both versions of cgroups tell."""
    own = {}
    try:
        with open("/proc/self/cgroup") as f:
            for line in f:
                _, kinds, path = line.rstrip("\n").split(":", 2)
                own.update((kind, path) for kind in kinds.split(","))
    except OSError:
        return 0
    for mount, kind, name in (("", "", "memory.events"), ("/memory", "memory", "memory.oom_control")):
        for path in (own.get(kind, ""), ""):  # inside a container its own is the root
            try:
                with open("/sys/fs/cgroup%s%s/%s" % (mount, path, name)) as f:
                    return sum(int(line.split()[1]) for line in f if line.startswith("oom_kill "))
            except OSError:
                pass
    return 0


def tail(path):
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - 4096))
        return f.read().decode(errors="replace")


def describe(how):
    """An exit.json in words."""
    code = how.get("code")
    if how.get("out_of_memory"):
        return "killed because the memory was full"
    if how.get("stopped"):
        return "stopped"
    if code is None:
        return "its keeper was killed too"
    if code > 128:
        try:
            return "killed by %s" % signal.Signals(code - 128).name
        except ValueError:
            pass
    return "exit status %d" % code
