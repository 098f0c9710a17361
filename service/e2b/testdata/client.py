"""A client of E2B's API, written by hand: JSON over HTTP, as E2B's SDKs for Python and JavaScript
send it. It makes the calls that their sandboxes, commands, terminals and files need, and checks the
answers field by field.

Arguments: the address of the API, a key, and perhaps the word "code", for the calls of E2B's code
interpreter alone, in a sandbox of the template of that name. It prints a line for each call, with
the time since it began, and ends with 1 at the first answer that differs.
"""

import base64
import hashlib
import http.client
import json
import struct
import sys
import time
import urllib.parse

URL, KEY, *PARTS = sys.argv[1:]
HOST = urllib.parse.urlparse(URL).netloc
LIMIT = 60  # seconds, against hanging
began = time.monotonic()
calls = 0


def check(what, condition, seen=None):
    if not condition:
        sys.exit(f"{what}: {seen!r}")


def done(name):
    global calls
    calls += 1
    print(f"{calls} {time.monotonic() - began:.1f} s: {name}", flush=True)


def shape(what, value, required, optional={}):
    """Checks that an object has the required fields, of these types, and no unknown ones."""
    check(what, isinstance(value, dict), value)
    for name, kind in required.items():
        check(f"{what}.{name}", name in value and isinstance(value[name], kind), value)
    for name in value:
        kind = required.get(name, optional.get(name))
        check(f"{what}.{name} is unknown", kind is not None, value)
        check(f"{what}.{name}", isinstance(value[name], kind), value)


def request(method, path, body=None, headers={}):
    c = http.client.HTTPConnection(HOST, timeout=LIMIT)
    c.request(method, path, body, headers)
    return c, c.getresponse()


def ask(method, path, body=None, want=200, key=KEY, **more):
    """A call of the control plane."""
    headers = {"X-API-KEY": key, "User-Agent": "e2b-python-sdk/2.45.1", "lang": "python"}
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body)
    c, r = request(method, path, body, headers)
    text = r.read()
    c.close()
    check(f"{method} {path} status", r.status == want, (r.status, text))
    done(f"{method} {path.split('?')[0]} {want}")
    if want >= 400:
        error = json.loads(text)
        shape("error", error, {"code": int, "message": str})
        check("error.code", error["code"] == want, error)
        return error
    more.get("header", {}).update(r.headers)
    return json.loads(text) if text else None


SANDBOX = {"templateID": str, "sandboxID": str, "clientID": str, "envdVersion": str,
           "envdAccessToken": str}
SANDBOX_MORE = {"alias": str, "domain": (str, type(None)), "trafficAccessToken": (str, type(None))}
LISTED = {"templateID": str, "sandboxID": str, "clientID": str, "startedAt": str, "endAt": str,
          "cpuCount": int, "memoryMB": int, "diskSizeMB": int, "state": str, "envdVersion": str}
LISTED_MORE = {"alias": str, "metadata": dict}


class Data:
    """A client of a sandbox's data plane."""

    def __init__(self, sandbox):
        self.headers = {"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49983",
                        "X-Access-Token": sandbox["envdAccessToken"]}
        self.token = sandbox["envdAccessToken"]

    def unary(self, method, message, want=200, code=None, user=None):
        headers = {**self.headers, "Content-Type": "application/json",
                   "Connect-Protocol-Version": "1"}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        c, r = request("POST", "/" + method, json.dumps(message), headers)
        text = r.read()
        c.close()
        check(f"{method} status", r.status == want, (r.status, text))
        check(f"{method} type", r.headers["Content-Type"] == "application/json", dict(r.headers))
        answer = json.loads(text)
        if code:
            shape(method, answer, {"code": str, "message": str})
            check(f"{method} code", answer["code"] == code, answer)
        done(f"{method} {code or want}")
        return answer

    def stream(self, method, message, user=None, **headers):
        """Yields the messages of a stream. The last frame must have no error."""
        body = json.dumps(message).encode()
        headers = {**self.headers, **headers, "Content-Type": "application/connect+json",
                   "Connect-Protocol-Version": "1", "Keepalive-Ping-Interval": "50"}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        c, r = request("POST", "/" + method, struct.pack(">BI", 0, len(body)) + body, headers)
        try:
            check(f"{method} status", r.status == 200, r.status)
            check(f"{method} type", r.headers["Content-Type"] == "application/connect+json")
            done(method)
            while True:
                flag, size = struct.unpack(">BI", r.read(5))
                frame = json.loads(r.read(size))
                if flag & 2:
                    if "error" in frame:
                        raise StreamError(frame["error"])
                    check(f"{method} end", frame == {}, frame)
                    return
                yield frame
        finally:
            c.close()

    def start(self, command, pty=None, stdin=False, user=None, timeout=None, **config):
        """Starts a command as the SDKs do. Yields the process id first, then its events."""
        message = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command], **config},
                   "stdin": stdin}
        if pty:
            message = {"process": {"cmd": "/bin/bash", "args": ["-i", "-l"], "envs": {
                "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}},
                "pty": {"size": pty}}
        more = {"Connect-Timeout-Ms": str(timeout)} if timeout else {}
        yield from events(self.stream("process.Process/Start", message, user, **more))

    def run(self, command, **more):
        """Runs a command to its end: its standard output and error, and the end's event."""
        out = {"stdout": b"", "stderr": b""}
        for e in self.start(command, **more):
            if isinstance(e, int):
                continue
            if "exited" in e or "status" in e:
                return out["stdout"].decode(), out["stderr"].decode(), e
            for name, data in e.items():
                out[name] += base64.b64decode(data)
        sys.exit(f"{command}: no end")

    def file(self, method, query, body=None, want=200, headers={}):
        path = "/files?" + urllib.parse.urlencode(query)
        c, r = request(method, path, body, {**self.headers, **headers})
        text = r.read()
        c.close()
        check(f"{method} {path} status", r.status == want, (r.status, text))
        done(f"{method} /files {want}")
        if want >= 400:
            shape("error", json.loads(text), {"code": int, "message": str})
        return text


class StreamError(Exception):
    def __init__(self, error):
        shape("stream error", error, {"code": str, "message": str})
        self.code = error["code"]


def events(stream):
    """Yields the process id, and then what is in the events data and end."""
    first = next(stream)
    shape("first", first, {"event": dict})
    shape("start", first["event"], {"start": dict})
    shape("start", first["event"]["start"], {"pid": int})
    yield first["event"]["start"]["pid"]
    for message in stream:
        event = message["event"]
        check("event", len(event) == 1, event)
        if "data" in event:
            check("data", len(event["data"]) == 1, event)
            yield event["data"]
        elif "end" in event:
            shape("end", event["end"], {"status": str},
                  {"exitCode": int, "exited": bool, "error": str})
            yield event["end"]
        else:
            shape("keepalive", event, {"keepalive": dict})


def control_plane():
    ask("GET", "/v2/sandboxes", want=401, key="wrong")
    ask("POST", "/sandboxes", {"templateID": "none", "timeout": 60}, want=404)
    box = ask("POST", "/sandboxes", {
        "templateID": "base", "timeout": 60, "autoPause": False, "secure": True,
        "metadata": {"test": "python"}, "envVars": {"FROM": "create"},
        "allow_internet_access": False, "mcp": None, "network": None}, want=201)
    shape("sandbox", box, SANDBOX, SANDBOX_MORE)
    newer = ask("POST", "/v2/sandboxes", {"templateID": "base"}, want=201)
    shape("sandbox", newer, SANDBOX, SANDBOX_MORE)
    at = "/sandboxes/" + box["sandboxID"]
    detail = ask("GET", at)
    shape("detail", detail, {**LISTED, "envdAccessToken": str, "lifecycle": dict},
          {**LISTED_MORE, "domain": (str, type(None))})
    check("lifecycle", detail["lifecycle"] == {"autoResume": False, "onTimeout": "kill"}, detail)
    check("state", detail["state"] == "running", detail)
    header = {}
    page = ask("GET", "/v2/sandboxes?limit=1&state=running", header=header)
    shape("listed", page[0], LISTED, LISTED_MORE)
    check("X-Next-Token", header.get("X-Next-Token"), header)
    rest = ask("GET", "/v2/sandboxes?limit=1&nextToken=" + header["X-Next-Token"])
    check("pages", {page[0]["sandboxID"], rest[0]["sandboxID"]} ==
          {box["sandboxID"], newer["sandboxID"]}, (page, rest))
    query = urllib.parse.urlencode({"metadata": urllib.parse.urlencode({"test": "python"})})
    found = ask("GET", "/v2/sandboxes?" + query)
    check("metadata", [b["sandboxID"] for b in found] == [box["sandboxID"]], found)
    check("v1", len(ask("GET", "/sandboxes")) == 2)
    ask("POST", at + "/timeout", {"timeout": 120}, want=204)
    ask("POST", at + "/refreshes", {"duration": 180}, want=204)
    shape("metric", ask("GET", at + "/metrics")[0], {
        "timestamp": str, "timestampUnix": int, "cpuCount": int, "cpuUsedPct": (int, float),
        "memUsed": int, "memTotal": int, "memCache": int, "diskUsed": int, "diskTotal": int})
    ask("POST", at + "/pause", {}, want=204)
    ask("POST", at + "/pause", {}, want=409)
    check("paused", ask("GET", at)["state"] == "paused")
    shape("resumed", ask("POST", at + "/resume", {"timeout": 60}, want=201), SANDBOX, SANDBOX_MORE)
    again = ask("POST", at + "/connect", {"timeout": 60})
    shape("connected", again, SANDBOX, SANDBOX_MORE)
    check("token", again["envdAccessToken"] == box["envdAccessToken"], again)
    ask("POST", f"/v2{at}/connect", {"timeout": 600})  # its end must not come before that of all
    ask("DELETE", "/sandboxes/" + newer["sandboxID"], want=204)
    ask("DELETE", "/sandboxes/" + newer["sandboxID"], want=404)
    ask("GET", "/sandboxes/" + newer["sandboxID"], want=404)
    ask("POST", "/sandboxes/" + newer["sandboxID"] + "/connect", {"timeout": 60}, want=404)
    return box


def ends_and_copies():
    """autoPause, autoResume, fork, and network rules."""
    box = ask("POST", "/sandboxes", {
        "templateID": "exit", "timeout": 600, "autoPause": True, "autoPauseMemory": True,
        "autoResume": {"enabled": True}, "network": {
            "allowOut": ["a.example.com"], "denyOut": ["0.0.0.0/0"]}}, want=201)
    shape("sandbox", box, SANDBOX, SANDBOX_MORE)
    at = "/sandboxes/" + box["sandboxID"]
    detail = ask("GET", at)
    shape("lifecycle", detail["lifecycle"], {"autoResume": bool, "onTimeout": str})
    check("lifecycle", detail["lifecycle"] == {"autoResume": True, "onTimeout": "pause"}, detail)
    check("network", detail["network"] == {
        "allowOut": ["a.example.com"], "denyOut": ["0.0.0.0/0"]}, detail)
    ask("PUT", at + "/network", {"denyOut": ["8.8.8.8"]}, want=501)
    ask("PUT", at + "/network", {"allowOut": ["a.example.com"]}, want=400)
    ask("PUT", at + "/network", {"denyOut": ["0.0.0.0/0"]}, want=204)
    check("network", ask("GET", at)["network"] == {"denyOut": ["0.0.0.0/0"]})
    ask("PUT", at + "/network", {}, want=204)
    check("network", "network" not in ask("GET", at))
    d = Data(box)
    d.run("echo kept >/tmp/kept")
    forks = ask("POST", at + "/fork", {"timeout": 600, "count": 2}, want=201)
    check("forks", len(forks) == 2, forks)
    for fork in forks:
        shape("fork", fork, {"sandbox": dict})
        shape("fork", fork["sandbox"], SANDBOX, SANDBOX_MORE)
        check("fork", Data(fork["sandbox"]).run("cat /tmp/kept")[0] == "kept\n")
        ask("DELETE", "/sandboxes/" + fork["sandbox"]["sandboxID"], want=204)
    ask("POST", at + "/fork", {"count": 0}, want=400)
    ask("POST", at + "/pause", {}, want=204)
    check("resumed", d.run("cat /tmp/kept")[0] == "kept\n")
    check("state", ask("GET", at)["state"] == "running")
    ask("DELETE", at, want=204)


def commands(d):
    c, r = request("GET", "/health", headers=d.headers)
    check("/health", r.status == 204, r.status)
    c.close()
    done("/health")
    out, err, end = d.run('echo out; echo err >&2; echo "$FROM $X $E2B_SANDBOX"; pwd',
                          envs={"X": "y z"}, cwd="/tmp")
    check("stdout", out == "out\ncreate y z true\n/tmp\n", out)
    check("stderr", err == "err\n", err)
    check("end", end == {"exited": True, "status": "exit status 0"}, end)
    _, _, end = d.run("exit 7")
    check("end", end == {"exitCode": 7, "exited": True, "status": "exit status 7",
                         "error": "exit status 7"}, end)
    check("user", d.run("id -un; pwd", user="user")[0] == "user\n/home/user\n")
    check("user", d.run("id -un", user="root")[0] == "root\n")
    try:
        list(d.start("sleep 60", timeout=500))
        sys.exit("a deadline does not end a command")
    except StreamError as e:
        check("deadline", e.code == "deadline_exceeded", e.code)
    try:
        list(d.start("true", cwd="/no/such"))
        sys.exit("a directory that does not exist is no error")
    except StreamError as e:
        check("cwd", e.code == "invalid_argument", e.code)

    cat = d.start("cat", stdin=True)
    pid = next(cat)
    listed = d.unary("process.Process/List", {})["processes"]
    shape("process", listed[0], {"config": dict, "pid": int}, {"tag": str})
    check("process", listed[0]["pid"] == pid, listed)
    shape("config", listed[0]["config"], {"cmd": str, "args": list}, {"envs": dict, "cwd": str})
    of = {"process": {"pid": pid}}
    text = base64.b64encode(b"typed\n").decode()
    d.unary("process.Process/SendInput", {**of, "input": {"stdin": text}})
    check("cat", next(cat) == {"stdout": text})
    d.unary("process.Process/CloseStdin", of)
    check("cat", next(cat)["status"] == "exit status 0")
    d.unary("process.Process/SendSignal", {**of, "signal": "SIGNAL_SIGKILL"}, 404, "not_found")
    d.unary("process.Process/Nothing", {}, 501, "unimplemented")

    sleep = d.start("echo up; sleep 60")
    of = {"process": {"pid": next(sleep)}}
    next(sleep)
    beside = events(d.stream("process.Process/Connect", of))
    check("connect", next(beside) == of["process"]["pid"])
    d.unary("process.Process/SendSignal", {**of, "signal": "SIGNAL_SIGKILL"})
    for reader in sleep, beside:
        end = next(reader)
        check("killed", end == {"exitCode": -1, "status": "signal: killed",
                                "error": "signal: killed"}, end)


def terminal(d):
    shell = d.start("", pty={"cols": 80, "rows": 24})
    of = {"process": {"pid": next(shell)}}
    seen = b""

    def typed(keys, want):
        nonlocal seen
        data = base64.b64encode(keys.encode()).decode()
        d.unary("process.Process/SendInput", {**of, "input": {"pty": data}})
        while want not in seen:
            event = next(shell)
            check("pty", list(event) == ["pty"], event)
            seen += base64.b64decode(event["pty"])
        seen = b""

    typed("stty size; echo $TERM\n", b"24 80\r\nxterm-256color\r\n")
    d.unary("process.Process/Update", {**of, "pty": {"size": {"cols": 100, "rows": 30}}})
    typed("stty size\n", b"30 100\r\n")
    d.unary("process.Process/SendSignal", {**of, "signal": "SIGNAL_SIGKILL"})
    end = [e for e in shell][-1]
    check("end", end.get("exitCode") == -1, end)


ENTRY = {"name": str, "type": str, "path": str, "mode": int, "permissions": str, "owner": str,
         "group": str, "modifiedTime": str}
ENTRY_MORE = {"size": str, "symlinkTarget": str, "isSymlink": bool, "metadata": dict}


def files(d):
    octets = {"Content-Type": "application/octet-stream"}
    home = "/home/user"
    made = json.loads(d.file("POST", {"path": "a/f.txt", "username": "user"}, b"text\n",
                             headers=octets))
    check("written", made == [{"name": "f.txt", "type": "file", "path": home + "/a/f.txt"}], made)
    form = b"".join(f'--b\r\nContent-Disposition: form-data; name="file"; filename="/tmp/{n}"'
                    f'\r\n\r\nof {n}\r\n'.encode() for n in (1, 2)) + b"--b--\r\n"
    made = json.loads(d.file("POST", {"username": "user"}, form,
                             headers={"Content-Type": "multipart/form-data; boundary=b"}))
    check("written", [m["path"] for m in made] == ["/tmp/1", "/tmp/2"], made)
    check("read", d.file("GET", {"path": "/tmp/2"}) == b"of 2")
    check("range", d.file("GET", {"path": "/tmp/2"}, want=206,
                          headers={"Range": "bytes=3-"}) == b"2")
    d.file("GET", {"path": "/none"}, want=404)
    d.file("GET", {"path": "/tmp"}, want=400)
    fs = "filesystem.Filesystem/"
    entry = d.unary(fs + "Stat", {"path": "a/f.txt"}, user="user")["entry"]
    shape("entry", entry, ENTRY, ENTRY_MORE)
    check("entry", (entry["type"], entry["size"], entry["owner"], entry["permissions"],
                    entry["mode"]) == ("FILE_TYPE_FILE", "5", "user", "-rw-r--r--", 0o644), entry)
    d.unary(fs + "Stat", {"path": "/none"}, 404, "not_found")
    metadata(d, octets, fs)
    d.unary(fs + "MakeDir", {"path": "/tmp/d/e"})
    d.unary(fs + "MakeDir", {"path": "/tmp/d/e"}, 409, "already_exists")
    moved = d.unary(fs + "Move", {"source": "/tmp/1", "destination": "/tmp/d/one"})["entry"]
    check("moved", moved["path"] == "/tmp/d/one", moved)
    listed = d.unary(fs + "ListDir", {"path": "/tmp/d", "depth": 1})["entries"]
    for e in listed:
        shape("entry", e, ENTRY, ENTRY_MORE)
    check("listed", [(e["name"], e["type"]) for e in listed] ==
          [("e", "FILE_TYPE_DIRECTORY"), ("one", "FILE_TYPE_FILE")], listed)
    check("empty", d.unary(fs + "ListDir", {"path": "/tmp/d/e", "depth": 1}) == {})
    d.unary(fs + "ListDir", {"path": "/none", "depth": 1}, 404, "not_found")
    watcher = d.unary(fs + "CreateWatcher", {"path": "/tmp/d", "recursive": False})
    shape("watcher", watcher, {"watcherId": str})
    stream = d.stream(fs + "WatchDir", {"path": "/tmp/d", "includeEntry": True})
    check("watch", next(stream) == {"start": {}})
    d.unary(fs + "Remove", {"path": "/tmp/d/one"})
    check("watch", next(stream) == {"filesystem": {"name": "one", "type": "EVENT_TYPE_REMOVE"}})
    stream.close()
    for _ in range(10 * LIMIT):
        got = d.unary(fs + "GetWatcherEvents", watcher).get("events")
        if got:
            break
        time.sleep(0.1)
    check("events", got == [{"name": "one", "type": "EVENT_TYPE_REMOVE"}], got)
    d.unary(fs + "RemoveWatcher", watcher)
    d.unary(fs + "GetWatcherEvents", watcher, 404, "not_found")

    text = f"/tmp/2:read:user:{d.token}"
    signature = "v1_" + base64.b64encode(
        hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    query = urllib.parse.urlencode({"path": "/tmp/2", "username": "user", "signature": signature})
    c, r = request("GET", "/files?" + query)
    check("signed", (r.status, r.read()) == (200, b"of 2"), r.status)
    c.close()
    done("GET /files signed")


def metadata(d, octets, fs):
    """Uploads with metadata, which SDKs send as headers and find wherever a file is described."""
    name, want = "/home/user/m/f", {"author": "me", "x-kind": "a b"}
    headers = {**octets, "X-Metadata-Author": "me", "X-Metadata-X-Kind": "a b"}
    watcher = d.unary(fs + "CreateWatcher", {"path": "/home/user", "recursive": True,
                                             "includeEntry": True})
    written = json.loads(d.file("POST", {"path": "m/f", "username": "user"}, b"1", headers=headers))
    check("written", written == [{"name": "f", "type": "file", "path": name, "metadata": want}],
          written)
    entry = d.unary(fs + "Stat", {"path": "m/f"}, user="user")["entry"]
    shape("entry", entry, ENTRY, ENTRY_MORE)
    check("metadata", entry["metadata"] == want and entry["owner"] == "user", entry)
    listed = d.unary(fs + "ListDir", {"path": "/home/user", "depth": 2})["entries"]
    check("listed", {e["path"]: e["metadata"] for e in listed if "metadata" in e} == {name: want},
          listed)
    for _ in range(10 * LIMIT):
        got = d.unary(fs + "GetWatcherEvents", watcher).get("events", [])
        got = [e["entry"] for e in got if e["name"] == "m/f" and "metadata" in e.get("entry", {})]
        if got:
            break
        time.sleep(0.1)
    shape("entry", got[-1], ENTRY, ENTRY_MORE)
    check("event", got[-1]["metadata"] == want, got)
    d.unary(fs + "RemoveWatcher", watcher)
    moved = d.unary(fs + "Move", {"source": name, "destination": name + "2"})["entry"]
    check("moved", moved["metadata"] == want, moved)
    d.file("POST", {"path": name + "2"}, b"2", headers=octets)
    entry = d.unary(fs + "Stat", {"path": name + "2"})["entry"]
    shape("entry", entry, ENTRY, {k: v for k, v in ENTRY_MORE.items() if k != "metadata"})
    d.file("POST", {"path": name}, b"", 400, {**octets, "X-Metadata-K": "v" * 4097})


def the_end(box, d):
    wrong = Data({**box, "envdAccessToken": "wrong"})
    c, r = request("POST", "/process.Process/List", "{}", wrong.headers)
    check("token", r.status == 401, r.status)
    shape("error", json.loads(r.read()), {"code": int, "message": str})
    c.close()
    done("a wrong token 401")
    sleep = d.start("sleep 60")
    next(sleep)
    ask("DELETE", "/sandboxes/" + box["sandboxID"], want=204)
    try:
        next(sleep)
        sys.exit("the end of a sandbox does not end its streams")
    except (http.client.HTTPException, struct.error, OSError):
        pass
    c, r = request("GET", "/health", headers=d.headers)
    gone = json.loads(r.read())
    check("gone", r.status == 502, r.status)
    shape("gone", gone, {"sandboxId": str, "message": str, "code": int})
    c.close()
    done("/health 502")


class Code:
    """A client of a sandbox's code interpreter."""

    def __init__(self, sandbox):
        self.headers = {"Content-Type": "application/json",
                        "E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49999",
                        "X-Access-Token": sandbox["envdAccessToken"],
                        "E2B-Traffic-Access-Token": sandbox["trafficAccessToken"]}

    def call(self, method, path, body=None, want=200):
        c, r = request(method, path, json.dumps(body) if body is not None else None, self.headers)
        text = r.read()
        c.close()
        check(f"{method} {path} status", r.status == want, (r.status, text))
        done(f"{method} {path} {want}")
        return json.loads(text) if want == 200 else text.decode()

    def execute(self, code, context=None, language=None, envs=None):
        """Returns the lines of the answer without those at its end, and the number of the cell."""
        c, r = request("POST", "/execute", json.dumps(
            {"code": code, "context_id": context, "language": language, "env_vars": envs}),
            self.headers)
        check("execute status", r.status == 200, (r.status, r.status != 200 and r.read()))
        lines = [json.loads(line) for line in r.read().splitlines()]
        c.close()
        lines = [line for line in lines if line != {"type": "keepalive"}]
        check("end", lines[-1] == {"type": "end_of_execution"}, lines)
        shape("number", lines[-2], {"type": str, "execution_count": int})
        check("number", lines[-2]["type"] == "number_of_executions", lines)
        for line in lines[:-2]:
            kind = line["type"]
            if kind in ("stdout", "stderr"):
                shape(kind, line, {"type": str, "text": str, "timestamp": str})
            elif kind == "error":
                shape(kind, line, {"type": str, "name": str, "value": str, "traceback": str})
            else:
                check("type", kind == "result", line)
                shape(kind, line, {"type": str, "is_main_result": bool, "extra": dict}, {
                    "text": str, "html": str, "markdown": str, "svg": str, "png": str,
                    "jpeg": str, "pdf": str, "latex": str, "json": (dict, list),
                    "javascript": str, "data": dict, "chart": dict})
        done("POST /execute")
        return lines[:-2], lines[-2]["execution_count"]

    def result(self, code, **more):
        """Returns the one result of code, without the fields that all results have."""
        (line,), _ = self.execute(code, **more)
        check("main", line.pop("type") == "result" and line.pop("is_main_result"), line)
        check("extra", line.pop("extra") == {}, line)
        return line


def code_interpreter():
    box = ask("POST", "/sandboxes", {"templateID": "code", "timeout": 300, "secure": True,
                                     "envVars": {"FROM": "create"}}, want=201)
    d = Code(box)
    check("health", d.call("GET", "/health") == "OK")
    contexts = d.call("GET", "/contexts")
    shape("context", contexts[0], {"id": str, "language": str, "cwd": str})
    check("contexts", [(c["id"], c["language"]) for c in contexts] == [("default", "python")],
          contexts)
    lines, first = d.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)")
    check("streams", [(li["type"], li["text"]) for li in lines] ==
          [("stdout", "out\n"), ("stderr", "err\n")], lines)
    check("value", d.result("x = 20; x + 1") == {"text": "21"})
    check("state", d.result("x", language="python") == {"text": "20"})
    _, fourth = d.execute("None")
    check("number", fourth == first + 3, (first, fourth))
    check("text", d.result("'it is'") == {"text": "it is"})
    check("json", d.result("{'a': [1, 2.5, None]}") ==
          {"text": "{'a': [1, 2.5, None]}", "json": {"a": [1, 2.5, None]}})
    check("no json", d.result("[float('nan')]") == {"text": "[nan]"})
    (error,), _ = d.execute("def f():\n    return 1 / 0\nf()")
    check("error", (error["name"], error["value"]) ==
          ("ZeroDivisionError", "division by zero"), error)
    check("traceback", "return 1 / 0" in error["traceback"], error)
    (error,), _ = d.execute("input()")
    check("input", error["name"] == "StdinNotImplementedError", error)

    lines, _ = d.execute("from IPython.display import display, HTML, Markdown, Latex, SVG, JSON\n"
                         "display(HTML('<b>h</b>'))\ndisplay(Markdown('*m*'), Latex('$l$'))\n"
                         "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))\n"
                         "display({'x/y': 'z'}, raw=True)\nJSON({'k': 1})")
    check("displays", [li.get(f) for li, f in zip(
        lines, ("html", "markdown", "latex"))] == ["<b>h</b>", "*m*", "$l$"], lines)
    check("svg", lines[3]["svg"].startswith("<svg"), lines)
    check("extra", lines[4]["extra"] == {"x/y": "z"}, lines)
    check("JSON", lines[5]["json"] == {"k": 1} and lines[5]["is_main_result"], lines)
    lines, _ = d.execute("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()")
    figure = [li for li in lines if "png" in li][0]
    png = base64.b64decode(figure["png"], validate=True)
    check("png", png.startswith(b"\x89PNG\r\n") and not figure["is_main_result"], figure)
    lines, _ = d.execute("class Chart:\n  def _repr_e2b_chart_(self):\n"
                         "    return {'type': 'line', 'title': 't', 'elements': []}\nChart()")
    check("chart", lines[0]["chart"] == {"type": "line", "title": "t", "elements": []}, lines)
    frame = ("import sys, types\nclass DataFrame:\n"
             "  def to_dict(self, orient): return {'a': [1, float('inf')], 2: ['x', object]}\n"
             "sys.modules['pandas'] = types.SimpleNamespace(DataFrame=DataFrame)\nDataFrame()")
    lines, _ = d.execute(frame)
    check("data", lines[0]["data"] == {"a": [1, None], "2": ["x", "<class 'object'>"]}, lines)

    show = "import os; print(*[os.environ.get(n) for n in ('FROM', 'A', 'B')])"
    for envs, want in (({"A": "a'\"\\\n", "FROM": "call"}, "call a'\"\\\n None\n"),
                       (None, "create None None\n")):
        (line,), _ = d.execute(show, envs=envs)
        check("envs", line["text"] == want, line)
    check("names", d.result("[n for n in globals() if n in ('env', 'before', 'small')]")["text"] ==
          "[]")

    context = d.call("POST", "/contexts", {"language": "python", "cwd": "/tmp"})
    shape("context", context, {"id": str, "language": str, "cwd": str})
    check("context", (context["language"], context["cwd"]) == ("python", "/tmp"), context)
    of = {"context": context["id"]}
    check("cwd", d.result("import os; os.getcwd()", **of) == {"text": "/tmp"})
    check("apart", d.result("'x' in globals()", **of) == {"text": "False"})
    check("contexts", context in d.call("GET", "/contexts"))
    d.execute("y = 1", **of)
    check("restart", d.call("POST", f"/contexts/{context['id']}/restart", {}) is None)
    check("fresh", d.result("'y' in globals()", **of) == {"text": "False"})
    check("remove", d.call("DELETE", f"/contexts/{context['id']}") is None)
    d.call("POST", "/execute", {"code": "1", "context_id": context["id"]}, want=404)
    d.call("POST", "/execute", {"code": "1", "language": "r"}, want=501)
    d.call("POST", "/execute", {"code": "1", "context_id": "x", "language": "python"}, want=400)
    ask("DELETE", "/sandboxes/" + box["sandboxID"], want=204)


if PARTS:
    code_interpreter()
    sys.exit()
sandbox = control_plane()
ends_and_copies()
data = Data(sandbox)
commands(data)
terminal(data)
files(data)
the_end(sandbox, data)
