"""Calls one function. Needs Python 3.8 or newer, and only the standard library.

The function runs in a child, whose stdout, stderr and result are three pipes. The parent copies
them as frames to the real stdout, which the child does not have, so nothing that the function
prints can be mistaken for a frame. The child is a fork, so the interpreter starts only once.

The real stdout gets the nonce of argv[1], then frames. A frame is a letter, the length in 4 bytes,
big-endian, and that many bytes:
  o, e  a piece of the function's stdout, stderr
  r     the result as JSON
  x     the last frame: the child's exit status in decimal, or -n if signal n killed it
"""

import os
import select
import signal
import struct
import sys
from json import dumps, loads  # by name, because the source may change the module

PIECE = 64 << 10
PIPE_MAX = 1 << 20  # the most bytes that the system keeps in a pipe
RESULT_MAX = 9 << 20  # answerMax of frames.go has 1 MiB more, for the other frames
MESSAGE_MAX = 64 << 10
FILE = "<tool>"


def main():
    frames = os.dup(1)
    adopt_orphans()  # before there is a child
    write_all(frames, sys.argv[1].encode())
    request = sys.stdin.buffer.read()
    # The function may write to the pipe of the result too. It does not know the seal, which marks
    # the real result.
    seal = os.urandom(16)
    pipes = [os.pipe() for _ in range(4)]
    ends = [r for r, _ in pipes]
    for fd in ends + [pipes[3][1]]:
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(pipes[3][1], warn_on_full_buffer=False)
    child = os.fork()
    if child:
        try:
            for _, w in pipes[:3]:
                os.close(w)
            watch(child, frames, ends, seal)
        except OSError:  # the reader of the frames has ended
            os.killpg(child, signal.SIGKILL)
        os._exit(0)

    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, number in ((nothing, 0), (pipes[0][1], 1), (pipes[1][1], 2)):
        os.dup2(fd, number)
    result = pipes[2][1]
    for fd in [frames, nothing] + [fd for pipe in pipes for fd in pipe if fd != result]:
        os.close(fd)
    # The old objects belong to the old descriptors. The new ones are line-buffered, so that a kill
    # loses no line.
    sys.stdout, sys.stderr = (
        open(fd, "w", 1, "utf-8", "backslashreplace", closefd=False) for fd in (1, 2))
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.argv = [""]
    sys.path[0] = ""  # as for python -c
    owner = os.getpid()
    reply = run(loads(request), owner)
    if os.getpid() == owner:  # a process that the function has forked may return too
        write_all(result, seal + struct.pack(">Q", len(reply)) + reply)
        os.close(result)
    # The interpreter ends as usual: it waits for threads and runs atexit functions.


# The parent.


def adopt_orphans():
    """Makes this process the parent of the child's orphans, so that a kill of its tree finds
    them."""
    try:
        import ctypes

        one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(36, one, none, none, none)  # PR_SET_CHILD_SUBREAPER
    except Exception:
        pass  # not Linux, or no ctypes: a kill finds orphans by their environment


def watch(child, frames, ends, seal):
    out, err, res, wake = ends
    kinds = {out: b"o", err: b"e"}
    result = bytearray()

    def read_piece(fd):
        """Reads and handles a piece. Returns its size, 0 if there is none."""
        try:
            piece = os.read(fd, PIECE)
        except BlockingIOError:
            return 0
        if not piece:
            readable.discard(fd)
        elif fd in kinds:
            frame(frames, kinds[fd], piece)
        elif fd == res:
            result.extend(piece)
        return len(piece)

    readable = set(ends)
    status = None
    while status is None:
        for fd in select.select(list(readable), [], [])[0]:
            read_piece(fd)
            if fd == wake:
                status = reap(child)
    # All that the child has written is in the pipes. A process that it has left behind may keep
    # them open and write for ever, so the rest is bounded.
    for fd in readable - {wake}:
        left = PIPE_MAX
        while left > 0:
            n = read_piece(fd)
            if n == 0:
                break
            left -= n
    _, _, sealed = result.partition(seal)
    if len(sealed) >= 8:
        size = struct.unpack(">Q", sealed[:8])[0]
        if len(sealed) - 8 >= size:
            frame(frames, b"r", sealed[8 : 8 + size])
    frame(frames, b"x", str(status).encode())


def reap(child):
    """Reaps all processes that have ended. Returns the child's exit status, None if it runs."""
    status = None
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = -os.WTERMSIG(how) if os.WIFSIGNALED(how) else os.WEXITSTATUS(how)


def frame(fd, kind, data):
    write_all(fd, kind + struct.pack(">I", len(data)) + data)


def write_all(fd, data):
    data = memoryview(data)
    while data:
        data = data[os.write(fd, data) :]


# The child.


def run(request, owner):
    """Calls the function, and returns its result, or the exception, as JSON."""
    import types

    stage = "compile"
    try:
        source = request["source"]
        if source[:1] == "\ufeff":  # a byte order mark, which compile does not accept
            source = source[1:]
        code = compiled(source)
        stage = "load"
        provide(source)
        module = sys.modules["tool"] = types.ModuleType("tool")
        exec(code, module.__dict__)
        stage = "find"
        function = find(module, request["function"])
        stage = "bind"
        positional, named = arguments(function, request)
        stage = "call"  # describe finds out whether it is bind or body
        value = function(*positional, **named)
        if hasattr(value, "__await__"):
            import asyncio

            stage = "body"
            value = asyncio.run(wait(value))
        stage = "return"
        reply = b'{"value": ' + encode(value, "result")
        if "state" in request:
            reply += b', "state": ' + encode(request["state"], "state")
        reply += b"}"
        if len(reply) > RESULT_MAX:
            raise OverflowError(
                "the result has %d bytes of JSON; %d are allowed" % (len(reply), RESULT_MAX))
        return reply
    except BaseException as e:
        if os.getpid() != owner:
            raise
        return dumps({"exception": describe(e, stage)}).encode()


def compiled(source):
    import linecache

    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)  # for tracebacks
    return compile(source, FILE, "exec", dont_inherit=True)


# Processes that multiprocessing does not fork (spawn, forkserver) start a new interpreter. It gets
# pickled data: first the name of the parent's main module, then the function to call. That function
# is in the module "tool", which is in no file. So the main module's name carries the source: when
# it is unpickled, the module "tool" can be imported.


class MainName(str):
    def __new__(cls, source):
        name = super().__new__(cls, "__main__")  # multiprocessing does not import this name
        name.source = source
        return name

    def __reduce__(self):
        return eval, (UNPICKLE, {"directory": os.path.dirname(__file__), "source": self.source})


UNPICKLE = """[
    __import__("sys").path.insert(0, directory),
    __import__("sandshell_tool"),
    __import__("sys").path.remove(directory),
][1].provide(source)"""


class Finder:
    """Imports the module "tool", also if there is a file of that name."""

    def __init__(self, source):
        self.source = source

    def find_spec(self, name, path=None, target=None):
        return spec(name, self) if name == "tool" else None

    def create_module(self, spec):
        return None  # Python makes the module

    def exec_module(self, module):
        exec(compiled(self.source), module.__dict__)


def provide(source):
    """Makes the module "tool" importable for this process and those that multiprocessing starts.

    Returns the main module's name.
    """
    name = MainName(source)
    sys.modules["__main__"].__spec__ = spec(name, None)
    sys.meta_path.insert(0, Finder(source))
    return name


def spec(name, loader):
    return type(os.__spec__)(name, loader)  # importlib.machinery.ModuleSpec, without a slow import


def find(module, name):
    function = module.__dict__.get(name)
    if callable(function):
        return function
    if name in module.__dict__:
        raise TypeError("%s is not a function, but of type %s" % (name, type(function).__name__))
    has = [n for n, f in module.__dict__.items()
           if callable(f) and getattr(f, "__module__", "") == "tool"]
    raise NameError(
        "there is no function %s in the source; it has %s" % (name, ", ".join(has) or "none"))


def arguments(function, request):
    """Returns positional and named arguments, with the state if there is such a parameter."""
    inner, named = function, dict(request["args"])
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code:
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        only = names[: code.co_posonlyargcount]
    else:
        import inspect  # here, because it is slow

        try:
            parameters = inspect.signature(inner).parameters
        except (TypeError, ValueError):  # some functions in C have no signature
            parameters = {}
        names = list(parameters)
        only = [n for n in names if parameters[n].kind == inspect.Parameter.POSITIONAL_ONLY]
    if "state" in request and "state" in names:
        if "state" in named:
            raise TypeError("state is given twice: as the state and as an argument")
        named["state"] = request["state"]
    positional = []
    for name in only:
        if name not in named:
            break
        positional.append(named.pop(name))
    return positional, named


async def wait(value):
    return await value


def encode(value, name):
    try:
        return dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as e:
        try:
            why = unfit(value, name, [])
        except RecursionError:
            why = name + " is nested too deeply"
        raise TypeError("not JSON: " + (why or str(e))) from None


def unfit(value, path, parents):
    """Returns where and why a value is not JSON, and None if it is."""
    if value is None or isinstance(value, (str, int)):
        return None
    if isinstance(value, float):
        return None if value - value == 0 else "%s is %r" % (path, value)
    if not isinstance(value, (dict, list, tuple)):
        return "%s is of type %s" % (path, type(value).__name__)
    if any(value is p for p in parents):
        return path + " contains itself"
    if isinstance(value, dict):
        items = value.items()
        for key in value:
            if not isinstance(key, (str, int, float, type(None))):
                return "%s has a key of type %s" % (path, type(key).__name__)
    else:
        items = enumerate(value)
    for key, item in items:
        why = unfit(item, "%s[%.100r]" % (path, key), parents + [value])
        if why:
            return why
    return None


def describe(e, stage):
    import traceback

    begin = e.__traceback__
    while begin and begin.tb_frame.f_code.co_filename == __file__:
        begin = begin.tb_next
    if stage == "call":  # without a frame of the function, the call itself raised
        stage = "bind" if isinstance(e, TypeError) and begin is None else "body"
    tb = begin
    while tb and tb.tb_frame.f_code.co_filename != FILE:
        tb = tb.tb_next
    try:
        message = str(e)
    except Exception:
        message = "<its str() failed>"
    text = ""
    if stage not in ("find", "bind", "return"):  # this program raised these
        try:
            text = "".join(traceback.format_exception(type(e), e, tb or begin))
        except Exception as other:
            text = "%s: %s\n(no traceback: %r)\n" % (type(e).__name__, message, other)
    return {
        "stage": stage,
        "type": type(e).__qualname__,
        "module": type(e).__module__,
        "message": shorten(message, MESSAGE_MAX),
        "traceback": shorten(text, 4 * MESSAGE_MAX),
    }


def shorten(text, limit):
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n[%d characters left out]\n%s" % (text[:half], len(text) - limit, text[-half:])
