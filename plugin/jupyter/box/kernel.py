"""Runs IPython's kernel: python kernel.py -f CONNECTION_FILE OPTION..."""

import codecs
import fcntl
import os
import select
import struct
import sys
import termios
import threading

# ipykernel imports debugpy if it is installed, which doubles the time of its start, for a debugger
# that nobody attaches. Cells can still import it.
sys.modules["debugpy"] = None
from ipykernel.iostream import OutStream  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402

del sys.modules["debugpy"]
sys.path[0] = ""  # the working directory, as in a notebook, instead of this file's directory


class Stream(OutStream):
    """Standard output or error of cells. The output of children and C libraries arrives whole, and
    belongs to the cell that ran when it was written.

    OutStream has a thread that reads this output from a pipe. What the thread has not read when a
    cell ends goes to the next cell, or is lost. If its buffer ends within a character, the thread
    ends, and processes that print more wait for ever.
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
            self._read_pipe()

    def _read_pipe(self):
        """Reads what is in the pipe, and writes it as output of the cell."""
        with self._reading:
            n = struct.unpack("i", fcntl.ioctl(self._fid, termios.FIONREAD, b"\0" * 4))[0]
            if n > 0:
                data = os.read(self._fid, n)
                self.write(self._decoder.decode(data))
                os.write(self._original_stdstream_copy, data)

    def flush(self):
        # The kernel flushes when a cell has ended. A process that a cell has forked must not wait
        # for the lock: the thread that holds it does not exist there.
        if hasattr(self, "_reading") and self._is_master_process():
            self._read_pipe()
        super().flush()


class App(IPKernelApp):
    def init_io(self):
        self.outstream_class = "__main__.Stream"
        super().init_io()

    def init_iopub(self, context):
        # ZeroMQ drops messages beyond this number that it cannot send, and reports no error. A loop
        # with display() reaches the default of 1000.
        context.sndhwm = 200_000
        super().init_iopub(context)


App.launch_instance()
