"""Makes the virtual environment argv[1] with the requirements on stdin, unless it exists.

The exit status is 3 if Python has neither ensurepip nor pip. One process at a time makes an
environment; others wait for the lock. If it fails, those that have waited fail too.
"""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

NO_PIP = 3


def main():
    base = os.path.join(os.path.dirname(os.path.abspath(__file__)), "venvs")
    at = os.path.join(base, sys.argv[1])
    request = json.load(sys.stdin)
    os.makedirs(base, exist_ok=True)
    # The lock file stays, because another process may wait for the lock. It has the number of
    # failures, and the status and output of the last one.
    lock = os.open(at + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    before = failure(lock)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.path.exists(at + "/ready") and os.access(at + "/bin/python", os.X_OK):
        return 0
    now = failure(lock)
    if now["times"] != before["times"]:
        print(now["output"], end="")
        return now["status"]
    status, output = make(base, at, request)
    if status != 0:
        shutil.rmtree(at, ignore_errors=True)
        os.ftruncate(lock, 0)
        text = json.dumps({"times": now["times"] + 1, "status": status, "output": output})
        os.pwrite(lock, text.encode(), 0)
    return status


def failure(lock):
    """Returns the last failure."""
    text = os.pread(lock, 1 << 20, 0)
    try:
        return json.loads(text)
    except ValueError:
        # There was none, or another process is writing one; then main reads it again, with the
        # lock.
        return {"times": 0}


def make(base, at, request):
    import venv

    shutil.rmtree(at, ignore_errors=True)  # left by a process that was killed
    output = []
    temp = tempfile.mkdtemp(dir=base)
    env = dict(os.environ, TMPDIR=temp, PYTHONDONTWRITEBYTECODE="1")
    for name in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER",
                 "PIP_REQUIRE_VIRTUALENV"):
        env.pop(name, None)
    env.setdefault("PIP_CACHE_DIR", os.path.join(base, "cache"))
    env.setdefault("PIP_ROOT_USER_ACTION", "ignore")
    if not os.path.exists(os.path.expanduser("~/.rustup")):
        env.setdefault("RUSTUP_HOME", temp)  # pip runs rustc, and rustup would make ~/.rustup

    def step(*args, quiet=False):
        with subprocess.Popen(args, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as p:
            for line in p.stdout:
                output.append(line.decode(errors="replace"))
                if not quiet:
                    print(output[-1], end="", flush=True)
        if quiet and p.returncode != 0:
            print(*output, sep="", end="")
        return p.returncode

    try:
        python = at + "/bin/python"
        pip = [python, "-B", "-m", "pip"]
        has_ensurepip = importlib.util.find_spec("ensurepip")
        if not has_ensurepip:
            if not importlib.util.find_spec("pip"):
                return NO_PIP, ""
            pip = [sys.executable, "-B", "-m", "pip", "--python", python]
        venv.create(at, symlinks=True)
        status = 0
        if has_ensurepip:
            status = step(python, "-B", "-m", "ensurepip", "--default-pip", quiet=True)
        if status == 0:
            output.clear()
            path = os.path.join(temp, "requirements.txt")
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(r + "\n" for r in request["requirements"])
            status = step(*pip, "install", "--disable-pip-version-check", "--no-input",
                          *request["pip_args"], "-r", path)
        if status == 0:
            open(at + "/ready", "w").close()
        status = 1 if status == NO_PIP else status
        return status, "".join(output)[-(64 << 10) :]
    except OSError as e:
        print(e)
        return 1, "".join(output)[-(64 << 10) :] + "%s\n" % e
    finally:
        shutil.rmtree(temp, ignore_errors=True)


sys.exit(main())
