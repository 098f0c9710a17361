"""Runs IPython's kernel: python kernel.py -f CONNECTION_FILE OPTION..."""

import sys

# ipykernel imports debugpy where there is one, which doubles the time of its start, for a debugger that nobody attaches. It stays
# importable for cells.
sys.modules["debugpy"] = None
from ipykernel.kernelapp import IPKernelApp  # noqa: E402

del sys.modules["debugpy"]
sys.path[0] = ""  # as in a notebook: the working directory, not this file's


class App(IPKernelApp):
    def init_iopub(self, context):
        # What ZeroMQ cannot get rid of beyond that many messages it drops, and tells nobody. Its default of 1000 a loop with
        # display() reaches.
        context.sndhwm = 200_000
        super().init_iopub(context)


App.launch_instance()
