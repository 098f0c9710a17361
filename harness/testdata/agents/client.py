"""An agent that speaks MCP on its standard input and output, in plain JSON-RPC.

Its argument says how it behaves."""

import json
import os
import sys
import time

last = 0


def send(method, id=None, **params):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    print(json.dumps(message | ({"id": id} if id else {})), flush=True)


def request(method, **params):
    global last
    last += 1
    send(method, last, **params)
    while True:
        line = sys.stdin.readline()
        if not line:
            sys.exit("the server has gone")
        message = json.loads(line)
        if message.get("id") == last:
            return message["result"]


def note(text):
    with open(os.environ["HARNESS_NUMBERS"], "a") as file:
        file.write(text)


def run(command):
    return request("tools/call", name="run", arguments={"command": command})["content"][0]["text"]


told = request("initialize", protocolVersion="2025-06-18", capabilities={},
               clientInfo={"name": "plain", "version": "1"})
send("notifications/initialized")
assert told["instructions"] == os.environ["HARNESS_INSTRUCTION"]
assert "run" in [tool["name"] for tool in request("tools/list")["tools"]]
print("it is", os.environ["HARNESS_TASK"], file=sys.stderr)
match sys.argv[1]:
    case "right":
        assert "done" in run("cat work/wanted")
        note('{"counts": {"tokens": 1200}, "scores": {"quality": 0.5}}\n')
        note(json.dumps({"counts": {"tokens": 300, "steps": int(os.environ["HARNESS_SAMPLE"])}}))
        run("cp work/wanted made/file")
    case "wrong":
        run("echo dome >made/file")
    case "asking":
        assert "waiting for a line" in run("rm -i work/wanted")
    case "crashing":
        sys.exit("no idea")
    case "killed":
        note('{"counts": {"tokens": 7}}\n{"counts": {"tok')
        os.kill(os.getpid(), 9)
    case "silent":
        run("true")
        time.sleep(1000)
    case "hanging":
        run("sleep 1000")
        time.sleep(1000)
    case "malformed":
        print("this is no message", flush=True)
        json.loads(sys.stdin.readline())["error"]
        run("cp work/wanted made/file")
    case "miscounting":
        note('{"counts": {"tokens": 7}}\n{"count": {"tokens": 7}}\n')
    case "leaving":
        send("tools/call", 1000, name="run", arguments={"command": "sleep 1000"})
    case "ending":
        run("kill -TERM 1; sleep 100")
        sys.exit("the box has gone")
