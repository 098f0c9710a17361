"""Drives pexpect's pxssh as its documentation shows: sendline, prompt, before.

Each line of input is a request in JSON, and each line of output its reply.
"""

import json
import os
import sys

import pexpect
from pexpect import pxssh

host, port, user, key = sys.argv[1:]
os.environ["TERM"] = "dumb"  # without sequences for bracketed paste in the output
shell = pxssh.pxssh(
    encoding="utf-8",
    codec_errors="replace",
    options={"StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null"},
)
shell.login(host, user, port=int(port), ssh_key=key, quiet=True)
print("ready", flush=True)


def after(limit):
    """Waits for the prompt. At the limit it types Ctrl-C, as pexpect's users do."""
    try:
        if shell.prompt(timeout=limit):
            output = shell.before.partition("\r\n")[2]
            shell.sendline("echo $?")
            shell.prompt(timeout=5)
            status = shell.before.split()
            return output, "ended", int(status[-1]) if status and status[-1].isdigit() else -1
        output = shell.before
        return output, "working", -1
    except (pexpect.EOF, OSError):
        return shell.before if isinstance(shell.before, str) else "", "lost", -1


asked = False
for line in sys.stdin:
    request = json.loads(line)
    do, text, limit = request["do"], request["text"], request["limit"]
    try:
        if do == "flood":
            shell.sendline(text)
            shell.prompt(timeout=limit)
            output, state, status = "", "ended", len(shell.before.partition("\r\n")[2])
        else:
            if do == "run" and asked:  # the command before has not ended
                shell.sendintr()
                shell.prompt(timeout=1)
            shell.sendline(text)
            output, state, status = after(limit)
            asked = state == "working"
    except (pexpect.ExceptionPexpect, OSError):
        output, state, status = "", "lost", -1
    print(json.dumps({"output": output, "state": state, "status": status}), flush=True)
