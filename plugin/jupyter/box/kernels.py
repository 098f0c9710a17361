"""Starts, finds and ends the kernels of a box.

A kernel has a name and a directory, which only its user may enter:

    lock             locked by a process that starts or ends the kernel
    alive            locked by the kernel's keeper as long as the kernel lives
    kernel.json      the kernel's id, the keeper's process id, the directory where it was started,
                     and what clients need to connect, with the key that signs messages
    connection.json  what clients need to connect, for the kernel, which rewrites the file while
                     others might read it
    exit.json        how the last kernel ended
    log              what the kernel printed outside of cells

The keeper is a process that waits for the kernel's end and writes exit.json.
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
    """An error whose text, one line, is for the user."""


def box():
    """Returns the mark of the box that this process belongs to."""
    return os.environ.get("SANDSHELL_SESSION", "").split(".")[0]


def writable_dir():
    """Returns the plugin's directory. If it cannot be written, as in a read-only image, returns one
    in /tmp that only the user may enter."""
    if os.access(HERE, os.W_OK):
        return HERE
    directory = "/tmp/sandshell-jupyter-%d" % os.getuid()
    os.makedirs(directory, mode=0o700, exist_ok=True)
    s = os.lstat(directory)  # another user may have made it
    if not stat.S_ISDIR(s.st_mode) or s.st_uid != os.getuid() or s.st_mode & 0o077:
        raise Failure("%s is not a directory that only its user may enter" % directory)
    return directory


def box_dir():
    """Returns the directory for the files of this box. Several boxes may share the plugin's."""
    return os.path.join(writable_dir(), "run", box()[:10] or "box")


class Kernel:
    def __init__(self, name):
        self.name = name
        self.dir = os.path.join(box_dir(), name)

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
        new = os.open(self.path(name + ".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(new, "w") as f:
            json.dump(value, f)
        os.rename(self.path(name + ".new"), self.path(name))

    def running(self):
        """Tells whether the kernel has a keeper."""
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
        """Returns the kernel's state: with "connection" if it runs, with "exit" if the last one has
        ended. The caller must hold the lock."""
        if self.running():
            try:
                self.wait_for_sockets()  # the process that started it may have been killed
                return self.read("kernel.json")
            except Failure:
                pass  # it has just died
        return self.state()

    def state(self):
        """Returns the state of a kernel that does not run."""
        how, kernel = self.read("exit.json"), self.read("kernel.json")
        if kernel and not how:
            how = {"id": kernel["id"], "code": None}
        return {"exit": how or {}}

    def connect(self, directory=None, fresh=False):
        """Starts the kernel if it does not run, or a new one if fresh, and returns its state."""
        with self.turn("lock"):
            if fresh:
                self.end()
            if not self.running():
                self.start(directory)
            return self.status()

    def stop(self):
        with self.turn("lock"):
            self.end()
            how = self.state().get("exit")
            if how and not how.get("stopped"):  # it had died before
                self.write("exit.json", dict(how, stopped=True))

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
            raise Failure("there is no directory %s to start the kernel in" % directory)
        alive = self.open_lock("alive")
        fcntl.flock(alive, fcntl.LOCK_EX)  # waits, because running() locks it for a moment
        for name in ("exit.json", "kernel.json", "connection.json"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
        # The keeper must not be a descendant of this process, which may run in a session or in a
        # cell. To kill that with its descendants would kill the keeper too.
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
        if box():  # the keeper belongs to the box, not to a session, whose end would kill it
            env["SANDSHELL_SESSION"] = box() + ".jupyter."
        null = open(os.devnull, "r+")
        cli = os.path.join(HERE, "execute_cli.py")
        subprocess.Popen(
            [sys.executable, cli, "--keep", str(alive), "--kernel", self.name],
            stdin=null, stdout=null, stderr=open(self.path("log"), "wb"), env=env, cwd=directory,
            pass_fds=[alive], start_new_session=True,
        )

    def wait_for_sockets(self):
        """Returns when the kernel listens. The kernel does not signal that, so this polls."""
        waiting = {"shell_port", "iopub_port", "stdin_port", "control_port"}
        limit = time.monotonic() + START_LIMIT
        while waiting:
            if not self.running():
                how = self.read("exit.json") or {}
                why = how.get("log", "").strip() or describe(how)
                raise Failure("the kernel does not start: %s" % why)
            if time.monotonic() > limit:
                self.end()
                raise Failure(
                    "the kernel does not start: it does not listen after %d s" % START_LIMIT)
            kernel = self.read("kernel.json")
            waiting = {p for p in waiting if not kernel or not listens(kernel["connection"], p)}
            if waiting:
                time.sleep(0.005)

    def keep(self):
        """Runs the kernel until it has ended. This process is its keeper."""
        ends = {signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        sockets = os.path.join(self.dir, "s")
        elsewhere = None
        if len(os.fsencode(sockets)) + 2 > SOCKET_NAME_MAX:
            elsewhere = tempfile.mkdtemp(prefix="sandshell-", dir="/tmp")
            sockets = os.path.join(elsewhere, "s")
        connection = dict(
            PORTS, transport="ipc", ip=sockets, key=os.urandom(32).hex(),
            signature_scheme="hmac-sha256", kernel_name="")
        self.write("connection.json", connection)
        kernel_id = os.urandom(8).hex()
        self.write("kernel.json", {
            "id": kernel_id, "keeper": os.getpid(), "dir": working_dir(),
            "connection": connection})
        before = out_of_memory_kills()
        received = []  # the signals that told the keeper to end the kernel

        def end(number, frame):
            received.append(number)
            kill(kernel.pid)

        kernel = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "kernel.py"), "-f", self.path("connection.json"),
             # Completion asks the running kernel. jedi would analyse the text, and keep a cache in
             # the user's home.
             "--IPCompleter.use_jedi=False", "--HistoryManager.hist_file=:memory:"],
            stdin=subprocess.DEVNULL, stdout=2, env=environment(), start_new_session=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, ends),
        )
        for number in ends:
            signal.signal(number, end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        code = kernel.wait()
        kill(kernel.pid)  # kills its children
        if elsewhere:
            shutil.rmtree(elsewhere, ignore_errors=True)
        if signal.SIGTERM in received or signal.SIGHUP in received:  # the box is being closed
            shutil.rmtree(self.dir, ignore_errors=True)
            return
        for name in glob.glob(glob.escape(sockets) + "-*"):
            os.remove(name)
        self.write("exit.json", {
            "id": kernel_id,
            "code": code if code >= 0 else 128 - code,
            "stopped": bool(received),
            "out_of_memory": code == -signal.SIGKILL and out_of_memory_kills() > before,
            "log": tail(self.path("log")),
        })


def started():
    """Returns the names and directories of the kernels that were started and not stopped."""
    found = []
    for directory in glob.glob(os.path.join(glob.escape(box_dir()), "*", "")):
        kernel = Kernel(os.path.basename(directory.rstrip("/")))
        with kernel.turn("lock"):
            state, how = kernel.read("kernel.json"), kernel.read("exit.json")
        if state and not (how and how.get("stopped")):
            found.append({"name": kernel.name, "dir": state.get("dir", "")})
    return sorted(found, key=lambda k: k["name"])


class Turn:
    """Holds a lock."""

    def __init__(self, fd):
        self.fd = fd

    def __enter__(self):
        fcntl.flock(self.fd, fcntl.LOCK_EX)

    def __exit__(self, *error):
        os.close(self.fd)


def working_dir():
    """Returns the working directory, or "" if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def environment():
    """Returns the kernel's environment, with IPython's and matplotlib's files outside the home."""
    env = dict(os.environ)
    dirs = {
        "IPYTHONDIR": "ipython", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
    }
    if os.path.isdir(os.path.join(HERE, "cache")) or writable_dir() != HERE:
        dirs.update({"MPLCONFIGDIR": "matplotlib", "XDG_CACHE_HOME": "cache"})
    env.update({name: os.path.join(writable_dir(), d) for name, d in dirs.items()})
    env["JPY_PARENT_PID"] = str(os.getpid())  # the kernel ends when its keeper has ended
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
    """Returns how many processes of this cgroup (version 1 or 2) were killed for want of memory."""
    own = {}
    try:
        with open("/proc/self/cgroup") as f:
            for line in f:
                _, kinds, path = line.rstrip("\n").split(":", 2)
                own.update((kind, path) for kind in kinds.split(","))
    except OSError:
        return 0
    versions = (("", "", "memory.events"), ("/memory", "memory", "memory.oom_control"))
    for mount, kind, name in versions:
        for path in (own.get(kind, ""), ""):  # in a container the own cgroup is the root
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
    """Returns an exit.json in words."""
    code = how.get("code")
    if how.get("out_of_memory"):
        return "killed because the memory was full"
    if how.get("stopped"):
        return "stopped"
    if code is None:
        return "its keeper was killed too"  # so nobody has written exit.json
    if code > 128:
        try:
            return "killed by %s" % signal.Signals(code - 128).name
        except ValueError:
            pass
    return "exit status %d" % code
