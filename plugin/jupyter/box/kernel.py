"""Runs IPython's kernel: python kernel.py -f CONNECTION_FILE OPTION..."""

import codecs
import fcntl
import os
import select
import struct
import sys
import termios
import threading

# ipykernel imports debugpy where there is one, which doubles the time of its start, for a debugger
# that nobody attaches. It stays importable for cells.
sys.modules["debugpy"] = None
from ipykernel.iostream import OutStream  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402

del sys.modules["debugpy"]
sys.path[0] = ""  # as in a notebook: the working directory, not this file's


class Stream(OutStream):
    """Standard output or error of cells. What their children and libraries in C write arrives whole, and with the cell that ran then.

    OutStream has a thread that reads it from a pipe. What that has not read when a cell ends, it takes for the next one's, or for nobody's; and a
    character that the end of its buffer cuts in two ends it, so that who prints on waits for ever.
    """

    def _setup_stream_redirects(self, name):
        self._reading = threading.RLock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        super()._setup_stream_redirects(name)

    def _watch_pipe_fd(self):
        pipe = select.poll()
        pipe.register(self._fid, select.POLLIN)
        while True:
            ended = any(not event & select.POLLIN for _, event in pipe.poll())
            if ended or not self._should_watch:
                return
            self._take()

    def _take(self):
        """Takes what is in the pipe now."""
        with self._reading:
            n = struct.unpack("i", fcntl.ioctl(self._fid, termios.FIONREAD, b"\0" * 4))[0]
            if n > 0:
                data = os.read(self._fid, n)
                self.write(self._decoder.decode(data))
                os.write(self._original_stdstream_copy, data)

    def flush(self):
        # The kernel flushes when a cell has ended. A process that a cell has forked has no such
        # thread, and perhaps the lock for ever.
        if hasattr(self, "_reading") and self._is_master_process():
            self._take()
        super().flush()


class App(IPKernelApp):
    def init_io(self):
        self.outstream_class = "__main__.Stream"
        super().init_io()

    def init_iopub(self, context):
        # What ZeroMQ cannot get rid of beyond that many messages it drops, and tells nobody. Its
        # default of 1000 a loop with display() reaches.
        context.sndhwm = 200_000
        super().init_iopub(context)


App.launch_instance()
