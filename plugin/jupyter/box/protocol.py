"""A client of a kernel, in as little of the Jupyter protocol as running a cell takes.

jupyter_client has all of it, and takes four times as long to import as the rest of execute_cli to run.
"""

import hashlib
import hmac
import json
import os

import zmq

DELIMITER = b"<IDS|MSG>"


class Channels:
    def __init__(self, connection):
        self.key = connection["key"].encode()
        self.session = os.urandom(8).hex()
        self.context = zmq.Context()
        self.context.linger = 1000
        address = "%s://%s-" % (connection["transport"], connection["ip"])
        identity = self.session.encode()  # the kernel asks on stdin whom it has got the cell from on shell

        def socket(kind, port):
            s = self.context.socket(kind)
            s.identity = identity
            if kind == zmq.SUB:
                s.subscribe(b"")
                s.rcvhwm = 0
            return s, address + str(connection[port])

        self.shell, shell = socket(zmq.DEALER, "shell_port")
        self.gone = self.shell.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.control, control = socket(zmq.DEALER, "control_port")
        self.stdin, stdin = socket(zmq.DEALER, "stdin_port")
        self.iopub, iopub = socket(zmq.SUB, "iopub_port")
        self.poller = zmq.Poller()
        for s, to in ((self.iopub, iopub), (self.shell, shell), (self.control, control), (self.stdin, stdin)):
            s.connect(to)
            self.poller.register(s, zmq.POLLIN)
        self.poller.register(self.gone, zmq.POLLIN)

    def sign(self, parts):
        mac = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in parts:
            mac.update(part)
        return mac.hexdigest().encode()

    def send(self, socket, kind, content, parent=None):
        """Sends a message and returns its id."""
        header = {
            "msg_id": os.urandom(16).hex(), "session": self.session, "username": "", "msg_type": kind, "version": "5.3",
            "date": "1970-01-01T00:00:00Z",
        }
        parts = [json.dumps(part).encode() for part in (header, parent or {}, {}, content)]
        socket.send_multipart([DELIMITER, self.sign(parts)] + parts)
        return header["msg_id"]

    def receive(self, socket):
        """Returns kind, content, the parent's id, and the header."""
        frames = socket.recv_multipart()
        frames = frames[frames.index(DELIMITER) + 1:]
        if not hmac.compare_digest(frames[0], self.sign(frames[1:5])):
            return None, {}, None, {}
        header, parent, _, content = (json.loads(frame) for frame in frames[1:5])
        return header["msg_type"], content, parent.get("msg_id"), header

    def subscribe(self):
        """Returns when what the kernel publishes arrives, True; False if the kernel is gone."""
        while True:
            probe = self.send(self.control, "kernel_info_request", {})
            replied = False
            while True:
                ready = dict(self.poller.poll(100 if replied else None))
                if self.gone in ready:
                    return False
                if self.iopub in ready:
                    kind, content, parent, _ = self.receive(self.iopub)
                    if parent == probe and kind == "status":
                        return True
                elif self.control in ready:
                    replied = self.receive(self.control)[2] == probe or replied
                elif replied:
                    break  # it was published before we were heard
