"""A client of a kernel, with the part of the Jupyter protocol that running a cell needs.

jupyter_client has the whole protocol. To import it takes four times as long as to run execute_cli.
"""

import hashlib
import hmac
import json
import os
import threading

import zmq

DELIMITER = b"<IDS|MSG>"


class Channels:
    def __init__(self, connection, wait_for_end):
        self.key = connection["key"].encode()
        self.session = os.urandom(8).hex()
        self.context = zmq.Context()
        self.context.linger = 1000
        address = "%s://%s-" % (connection["transport"], connection["ip"])
        # The kernel sends a question on stdin to the identity that has sent the cell on shell.
        identity = self.session.encode()

        def socket(kind, port):
            s = self.context.socket(kind)
            s.identity = identity
            if kind == zmq.SUB:
                s.subscribe(b"")
                s.rcvhwm = 0
            return s, address + str(connection[port])

        self.shell, shell = socket(zmq.DEALER, "shell_port")
        # There are two signs of the kernel's end, and either may be missing. A kernel that is
        # exiting may accept connections and keep them. If another kernel replaces it at once,
        # "alive" stays locked, and only the old connections are cut.
        self.cut = self.shell.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.ended, end = os.pipe()
        threading.Thread(target=lambda: (wait_for_end(), os.write(end, b"\n")), daemon=True).start()
        self.control, control = socket(zmq.DEALER, "control_port")
        self.stdin, stdin = socket(zmq.DEALER, "stdin_port")
        self.iopub, iopub = socket(zmq.SUB, "iopub_port")
        self.poller = zmq.Poller()
        for s, to in ((self.iopub, iopub), (self.shell, shell), (self.control, control),
                      (self.stdin, stdin)):
            s.connect(to)
            self.poller.register(s, zmq.POLLIN)
        for s in (self.cut, self.ended):
            self.poller.register(s, zmq.POLLIN)

    def gone(self, ready):
        """Tells whether a poll with the result ready has found that the kernel has ended."""
        return self.cut in ready or self.ended in ready

    def ends(self, seconds):
        """Tells whether the kernel ends within this time."""
        poller = zmq.Poller()
        poller.register(self.ended, zmq.POLLIN)
        return bool(poller.poll(1000 * seconds))

    def sign(self, parts):
        mac = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in parts:
            mac.update(part)
        return mac.hexdigest().encode()

    def send(self, socket, kind, content, parent=None):
        """Sends a message and returns its id."""
        header = {
            "msg_id": os.urandom(16).hex(), "session": self.session, "username": "",
            "msg_type": kind, "version": "5.3", "date": "1970-01-01T00:00:00Z",
        }
        parts = [json.dumps(part).encode() for part in (header, parent or {}, {}, content)]
        socket.send_multipart([DELIMITER, self.sign(parts)] + parts)
        return header["msg_id"]

    def receive(self, socket):
        """Receives a message, and returns its type, its content, its parent's id and its header."""
        frames = socket.recv_multipart()
        frames = frames[frames.index(DELIMITER) + 1:]
        if not hmac.compare_digest(frames[0], self.sign(frames[1:5])):
            return None, {}, None, {}
        header, parent, _, content = (json.loads(frame) for frame in frames[1:5])
        return header["msg_type"], content, parent.get("msg_id"), header

    def subscribe(self):
        """Waits until messages on iopub arrive. Returns False if the kernel ends first."""
        while True:
            probe = self.send(self.control, "kernel_info_request", {})
            replied = False
            while True:
                ready = dict(self.poller.poll(100 if replied else None))
                if self.gone(ready):
                    return False
                if self.iopub in ready:
                    kind, content, parent, _ = self.receive(self.iopub)
                    if parent == probe and kind == "status":
                        return True
                elif self.control in ready:
                    replied = self.receive(self.control)[2] == probe or replied
                elif replied:
                    break  # the message was published before the kernel knew of the subscription
