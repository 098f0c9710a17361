"""execute_cli runs a cell in an IPython kernel of this box, and prints what a notebook shows."""

import argparse
import base64
import getpass
import html
import json
import os
import re
import signal
import sys

from kernels import Failure, Kernel, box_dir, describe, started

# How many seconds a kernel may take to end after a cell has told it to.
EXIT_LIMIT = 5

# The forms of an output that go to a file, the best first, and the file's extension.
FILES = {
    "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/svg+xml": "svg",
    "application/pdf": "pdf",
}


def main():
    p = argparse.ArgumentParser(
        prog="execute_cli", usage="execute_cli [--kernel NAME] <CODE, or --restart, or --stop",
        description="Runs the code on standard input in an IPython kernel, which keeps its state "
        "from call to call. Prints what a notebook shows: output, the value of the last "
        "expression, and the names of files with figures. The exit status is 1 if the code raised "
        "an exception, and 130 if it was interrupted. The first call starts the kernel in the "
        "working directory.")
    p.add_argument("--kernel", metavar="NAME", default="default",
                   help="which kernel; default: %(default)s")
    p.add_argument("--restart", action="store_true",
                   help="end the kernel, if it runs, and start a fresh one")
    p.add_argument("--stop", action="store_true", help="end the kernel")
    # for setup.sh and package jupyter
    for hidden in ("--check", "--connect", "--list", "--status"):
        p.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--dir", help=argparse.SUPPRESS)
    p.add_argument("--keep", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", a.kernel):
        p.error("a kernel's name has up to 64 letters, digits, \"-\", \"_\" and \".\", "
                "and begins with a letter or a digit")
    kernel = Kernel(a.kernel)
    if a.check:
        check()
    elif a.list:
        print(json.dumps({"kernels": started()}))
    elif a.keep is not None:
        kernel.keep()
    elif a.status:
        with kernel.turn("lock"):
            print(json.dumps(kernel.status()))
    elif a.connect:
        print(json.dumps(kernel.connect(a.dir, fresh=a.restart)))
    elif a.stop:
        kernel.stop()
    elif a.restart:
        kernel.connect(fresh=True)
    else:
        return execute(kernel, sys.stdin.buffer.read().decode(errors="replace"))
    return 0


def check():
    """Fails if a kernel could not run. Imports little, because every box is checked."""
    import importlib.util
    for module in ("IPython", "ipykernel", "jupyter_client", "zmq"):
        if importlib.util.find_spec(module) is None:
            raise Failure("%s has no module %s" % (sys.executable, module))
    import zmq  # noqa: F401: a compiled module, which may be there and fail


def execute(kernel, code):
    with kernel.turn("lock"):  # waits for a process that starts or ends the kernel
        status = kernel.status()
    if status.get("exit"):
        if not status["exit"].get("stopped"):
            raise Failure(died(kernel, status["exit"]))
        status = {}
    if "connection" not in status:
        status = kernel.connect()
    # Only one execute_cli at a time sends a cell. An interrupt of one that waits ends it.
    with kernel.turn("turn"):
        return Cell(kernel, status["connection"]).run(code)


def died(kernel, how):
    return "the kernel has died: %s. %s" % (describe(how), fresh(kernel))


def fresh(kernel):
    """Returns a sentence that says how to start a fresh kernel."""
    name = "" if kernel.name == "default" else " --kernel " + kernel.name
    return "For a fresh one, without the state: execute_cli%s --restart" % name


class Cell:
    def __init__(self, kernel, connection):
        from protocol import Channels
        self.kernel = kernel
        self.channels = Channels(connection, kernel.wait_for_end)
        self.id = None
        self.began = self.raised = False
        self.exiting = False  # whether the cell has told the kernel to exit
        self.interrupted = None  # the signal that interrupted it
        self.figures = 0
        self.count = 0

    def run(self, code):
        """Runs the cell and returns the exit status."""
        c = self.channels
        if not c.subscribe():
            return self.gone()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.interrupt)
        try:
            terminal = os.open("/dev/tty", os.O_RDWR)
            os.close(terminal)
        except OSError:
            terminal = None
        self.id = c.send(c.shell, "execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": terminal is not None, "stop_on_error": False,
        })
        replied = idle = False
        probes = set()  # requests that the kernel answers after the cell
        while not (replied and idle):
            ready = dict(c.poller.poll(1000 if replied or idle else None))
            if not ready:  # the reply or the end of the output is overdue
                probes.add(c.send(c.shell, "kernel_info_request", {}))
            if self.interrupted and not self.began:
                print("execute_cli: interrupted while the kernel ran another client's cell; "
                      "this one will run after it", file=sys.stderr)
                return 128 + self.interrupted
            if c.iopub in ready:
                kind, content, parent, _ = c.receive(c.iopub)
                if parent == self.id:
                    idle = kind == "status" and content["execution_state"] == "idle"
                    self.show(kind, content)
                elif parent in probes:
                    idle = True
            elif c.shell in ready:
                kind, content, parent, _ = c.receive(c.shell)
                if parent == self.id:
                    replied = True
                    self.reply(content)
                elif parent in probes and not replied:
                    # An interrupt that hits the kernel while it formats a traceback also ends the
                    # sending of the reply.
                    replied = self.raised = True
                    self.write(sys.stderr, "KeyboardInterrupt\n")
            elif c.stdin in ready:
                kind, content, parent, header = c.receive(c.stdin)
                if kind == "input_request":
                    c.send(c.stdin, "input_reply", {"value": self.ask(content)}, header)
            elif c.control in ready:
                c.receive(c.control)
            elif c.gone(ready):
                return self.gone()
        if self.exiting:
            self.wait_for_exit()
        if self.interrupted and self.raised:
            return 128 + self.interrupted
        return 1 if self.raised else 0

    def wait_for_exit(self):
        """Waits for the kernel's end. If a thread of a cell holds that up, stops the kernel."""
        if not self.channels.ends(EXIT_LIMIT):
            self.kernel.stop()
        print("execute_cli: the cell has ended the kernel, by exit or quit. " + fresh(self.kernel),
              file=sys.stderr)

    def gone(self):
        self.kernel.wait_for_end()
        raise Failure(died(self.kernel, self.kernel.read("exit.json") or {}))

    def interrupt(self, number, frame):
        self.interrupted = number
        if self.began:
            self.channels.send(self.channels.control, "interrupt_request", {})

    def ask(self, content):
        """Reads the answer to input() from the terminal, because standard input has the code."""
        if content.get("password"):
            return getpass.getpass(content["prompt"])
        with open("/dev/tty", "r+b", buffering=0) as tty:
            tty.write(content["prompt"].encode())
            line = bytearray()
            while not line.endswith(b"\n"):
                byte = tty.read(1)
                if not byte:
                    break
                line += byte
        return line.decode(errors="replace").rstrip("\n")

    def reply(self, content):
        self.count = content.get("execution_count") or self.count
        self.raised = content["status"] != "ok"
        if content["status"] == "aborted":
            print("execute_cli: the kernel has aborted the cell", file=sys.stderr)
        for part in content.get("payload") or []:
            if part.get("source") == "page":  # the answer to "name?"
                self.rich(part["data"])
            elif part.get("source") == "ask_exit" and not part.get("keepkernel"):
                self.exiting = True

    def show(self, kind, content):
        if kind == "execute_input":
            self.began = True
            self.count = content["execution_count"]
        elif kind == "stream":
            self.write(sys.stderr if content["name"] == "stderr" else sys.stdout, content["text"])
        elif kind in ("execute_result", "display_data", "update_display_data"):
            self.rich(content["data"])
        elif kind == "error":
            text = plain("\n".join(content["traceback"]) or content["ename"])
            self.write(sys.stderr, text + "\n")

    def rich(self, data):
        for mime, extension in FILES.items():
            if mime in data:
                name = self.save(data[mime], mime, extension)
                self.write(sys.stdout, "[%s: %s]\n" % (mime, name))
                return
        self.write(sys.stdout, plain(text_of(data)).rstrip("\n") + "\n")

    def save(self, text, mime, extension):
        """Writes a figure to a file and returns its name."""
        self.figures += 1
        figures = os.path.join(box_dir(), "figures")
        os.makedirs(figures, mode=0o700, exist_ok=True)
        name = "%s-%d-%d.%s" % (self.kernel.name, self.count, self.figures, extension)
        name = os.path.join(figures, name)
        with open(name, "wb") as f:
            f.write(text.encode() if mime.endswith("+xml") else base64.b64decode(text))
        return name

    def write(self, to, text):
        to.write(text)
        to.flush()


def text_of(data):
    """Returns an output as text. If its plain form only names the object, takes another form."""
    text = data.get("text/plain", "")
    if text and not re.fullmatch(r"<[\w.]+ object( at 0x[0-9a-f]+)?>", text):
        return text
    for mime in ("text/markdown", "text/latex"):
        if mime in data:
            return data[mime]
    if "application/json" in data:
        return json.dumps(data["application/json"], ensure_ascii=False)
    if "text/html" in data:
        return text_of_html(data["text/html"])
    return text or next((v for v in data.values() if isinstance(v, str)), "")


def text_of_html(source):
    """Does what textOfHTML of package jupyter does, with the same expressions."""
    hidden = r"(?is)<!--.*?-->|<(script|style|head)\b.*?</(script|style|head)\s*>"
    source = re.sub(hidden, "", source)
    source = re.sub(r"(?i)</t[dh]\s*>\s*", "\t", source)
    rest = r"""("[^"]*"|'[^']*'|[^"'>])*>"""
    block = r"(\s*</?(br|p|div|tr|li|h[1-6]|ul|ol|table|thead|tbody|pre)\b" + rest + r"\s*)+"
    source = re.sub("(?i)" + block, "\n", source)
    source = re.sub("</?[a-zA-Z!]" + rest, "", source)
    return html.unescape(source).strip()


def plain(text):
    """Returns text without IPython's colours."""
    return re.sub("\x1b\\[[0-9;]*m", "", text)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", encoding="utf-8")
    try:
        status = main()
        sys.stdout.flush()
    except Failure as e:
        print("execute_cli:", e, file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # Nobody reads the output. The cell goes on, as in a notebook whose window is closed.
        status = 1
    sys.stderr.flush()
    os._exit(status)  # does not wait for ZeroMQ, which may have messages for a kernel that has died
