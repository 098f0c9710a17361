"""An MCP client in plain JSON-RPC. It starts a server, finds a bug, fixes it and runs the tests.

usage: python3 client.py DIRECTORY COMMAND...

DIRECTORY has the files of the task. COMMAND is the server's.
"""

import json
import pathlib
import re
import subprocess
import sys


class Client:
    def __init__(self, command):
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        self.notifications = []

    def send_line(self, text):
        self.server.stdin.write(text.encode() + b"\n")
        self.server.stdin.flush()

    def notify(self, method, params=None, **more):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
        self.send_line(json.dumps(message))

    def send_request(self, method, params=None):
        self.last += 1
        self.notify(method, params, id=self.last)
        return self.last

    def read_answer(self, id):
        while True:
            line = self.server.stdout.readline()
            assert line, "the server has ended"
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0", message
            if "id" in message:
                assert message["id"] == id, (id, message)
                return message
            self.notifications.append(message)

    def request(self, method, params=None):
        message = self.read_answer(self.send_request(method, params))
        assert "error" not in message, message
        return message["result"]

    def call(self, tool, failed=False, **arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        text = result["content"][0]["text"]
        assert result.get("isError", False) == failed, text
        if "[still running" in text:  # the machine is busy
            return text[: text.index("[still running")] + self.call("wait")
        return text

    def refused(self, line, code):
        self.send_line(line)
        assert self.read_answer(None)["error"]["code"] == code


def task(client, directory):
    client.request("initialize", {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "plain", "version": "1"},
    })
    client.notify("notifications/initialized")
    tools = {tool["name"]: tool for tool in client.request("tools/list")["tools"]}
    assert tools["run"]["inputSchema"]["required"] == ["command"], tools["run"]
    for path in sorted(pathlib.Path(directory).glob("*.py")):
        client.call("write", path="project/" + path.name, content=path.read_text())
    client.call("run", command="cd project")

    client.refused("this is no message", -32700)
    said = client.call("run", command="python3 -B test_stats.py")
    assert "FAILED (failures=1)" in said and "test_median_even" in said, said
    assert "[exit status 1]" in said, said
    client.refused("[]", -32600)
    client.refused('{"jsonrpc": "2.0"}', -32600)

    # A cancelled request gets an error. Its command ends, and the session goes on.
    client.call("run", command="mkfifo going")
    arguments = {"command": "echo >going; sleep 1000", "seconds": 1000}
    id = client.send_request("tools/call", {"name": "run", "arguments": arguments})
    job = re.search(r"\[(job-\d+) ", client.call("job_start", command="cat project/going"))[1]
    client.call("job_wait", job=job)
    client.notify("notifications/cancelled", {"requestId": id})
    message = client.read_answer(id)
    assert "error" in message, message
    assert client.call("run", command="pwd").strip().endswith("/project")

    said = client.call("run", failed=True, comand="ls")
    assert 'there is no argument "comand"' in said, said
    assert 'the argument "command" is missing' in said, said
    assert "there is no tool" in client.call("bash", failed=True, command="ls")
    assert client.call("find", pattern="*.py") == "stats.py\ntest_stats.py\n"
    said = client.call("read", path="stats.py", line=8, lines=6)
    assert "    13\t    return (ordered[middle] + ordered[middle + 1]) / 2\n" in said, said
    said = client.call("edit", failed=True, path="stats.py", old="ordered[middle]", new="")
    assert "2 times" in said, said
    client.call(
        "edit",
        path="stats.py",
        old="ordered[middle] + ordered[middle + 1]",
        new="ordered[middle - 1] + ordered[middle]",
    )

    command = "read -p 'really? ' answer && echo \"it is $answer\""
    said = client.call("run", command="python3 -B test_stats.py && " + command)
    assert "Ran 3 tests" in said and "OK" in said, said
    assert said.endswith("really? \n[waiting for a line of input]\n"), said
    assert client.call("answer", text="so").endswith("it is so\n")


client = Client(sys.argv[2:])
task(client, sys.argv[1])
client.server.stdin.close()
assert client.server.stdout.read() == b"", "output after the last answer"
code = client.server.wait()
assert code == 0, code
print("done")
