"""Programs that ask at the terminal, or work while something reads it. The argument says which.

What asks ends at a line. What works prints "working", and goes on for WORK seconds.
"""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

WORK = 60
ASKS = 'printf "name? "; read -r x; echo "got $x"'
SLEEPS = ["sleep", str(WORK)]


def beside(function):
    threading.Thread(target=function, daemon=True).start()


def prompt():
    print("name? ", end="", flush=True)


def ask():
    print("got", input("name? "))


def pump():
    """Reads the terminal in a thread, as a program does that hands its input on."""
    beside(sys.stdin.read)


def working():
    print("working", flush=True)


def burn():
    end = time.time() + WORK
    while time.time() < end:
        pass


def listening():
    s = socket.create_server(("127.0.0.1", 0))
    s.settimeout(WORK)
    return s


# What asks.


def silent():
    sys.stdin.readline()


def secret():
    import getpass

    getpass.getpass()


def idle_pool():
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(3)
    for _ in range(3):
        pool.submit(int)
    ask()


def joined_thread():
    t = threading.Thread(target=ask)
    t.start()
    t.join()


def to_thread():
    async def main():
        await asyncio.to_thread(ask)

    asyncio.run(main())


def add_reader():
    async def main():
        prompt()
        line = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(
            0, lambda: line.done() or line.set_result(sys.stdin.readline())
        )
        await line

    asyncio.run(main())


def forked_child():
    pid = os.fork()
    if pid == 0:
        ask()
        os._exit(0)
    os.waitpid(pid, 0)


def reads_pump():
    """The parent waits for what a child reads from the terminal."""
    forked_pump(lambda pipe: os.read(pipe, 1))


def child_on_terminal():
    subprocess.run(["sh", "-c", ASKS.replace("; read", " >/dev/tty; read")], stdout=subprocess.PIPE)


def child_joined():
    subprocess.run(["sh", "-c", ASKS])


def repl():
    import code

    code.interact()


def command_loop():
    import cmd

    cmd.Cmd().cmdloop()


def debugger():
    import pdb

    pdb.set_trace()
    print(1)


def curses_key():
    import curses

    curses.wrapper(lambda w: (w.addstr("name? "), w.getch()))


def prompt_toolkit():
    from prompt_toolkit import prompt

    prompt("name? ")


# What asks while something else goes on.


def heartbeat():
    def beat():
        while True:
            time.sleep(1)

    beside(beat)
    ask()


def worker():
    def work():
        while True:
            sum(range(10000))

    beside(work)
    ask()


def joined_often():
    t = threading.Thread(target=ask)
    t.start()
    while t.is_alive():
        t.join(0.5)


def to_thread_ticks():
    async def tick():
        while True:
            await asyncio.sleep(0.1)

    async def main():
        ticks = asyncio.create_task(tick())
        await asyncio.to_thread(ask)
        ticks.cancel()

    asyncio.run(main())


def select_ticks():
    prompt()
    while not select.select([0], [], [], 0.25)[0]:
        pass


def processes():
    import multiprocessing

    with multiprocessing.Pool(2):
        ask()


def curses_timeout():
    import curses

    def main(w):
        w.addstr("name? ")
        w.timeout(200)
        while w.getch() < 0:
            pass

    curses.wrapper(main)


def toolkit_refreshes():
    from prompt_toolkit import PromptSession

    PromptSession(refresh_interval=0.5, bottom_toolbar=lambda: time.strftime("%M")).prompt("name? ")


# What works.


def sleeps():
    pump()
    working()
    time.sleep(WORK)


def burns():
    pump()
    working()
    burn()


def prints():
    pump()
    working()
    for i in range(2 * WORK):
        time.sleep(0.5)
        print(i, flush=True)


def child():
    pump()
    working()
    subprocess.run(SLEEPS)


def busy_child():
    pump()
    working()
    subprocess.run(["timeout", str(WORK), "sh", "-c", "while :; do :; done"])


def captured_child():
    pump()
    working()
    subprocess.run(SLEEPS, stdout=subprocess.PIPE)


def fed_child():
    """A thread hands what it reads from the terminal to a child, which works."""
    p = subprocess.Popen(SLEEPS, stdin=subprocess.PIPE)
    beside(lambda: [p.stdin.write(line) for line in sys.stdin.buffer])
    working()
    p.wait()


def accepts():
    pump()
    working()
    listening().accept()


def loop_sleeps():
    async def main():
        asyncio.get_running_loop().add_reader(0, sys.stdin.readline)
        working()
        await asyncio.sleep(WORK)

    asyncio.run(main())


def loop_serves():
    async def main():
        asyncio.get_running_loop().add_reader(0, sys.stdin.readline)
        server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
        working()
        await server.serve_forever()

    asyncio.run(main())


def loop_child():
    async def main():
        asyncio.get_running_loop().add_reader(0, sys.stdin.readline)
        working()
        p = await asyncio.create_subprocess_exec(*SLEEPS, stdin=subprocess.DEVNULL)
        await p.wait()

    asyncio.run(main())


def forked_pump(parent):
    pipe, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        while data := os.read(0, 100):
            os.write(end, data)
        os._exit(0)
    parent(pipe)
    os.kill(pid, signal.SIGKILL)


def forked_pump_sleeps():
    working()
    forked_pump(lambda pipe: time.sleep(WORK))


def forked_pump_burns():
    working()
    forked_pump(lambda pipe: burn())


def polls_keys():
    working()
    while True:
        select.select([0], [], [], 0.05)
        sum(range(20000))


def polls_keys_and_file():
    working()
    while True:
        select.select([0], [], [], 0.2)
        os.path.exists("/nothing")


def event():
    """The main thread waits for one that sleeps."""
    done = threading.Event()
    pump()
    beside(lambda: (time.sleep(WORK), done.set()))
    working()
    done.wait()


def event_timeout():
    pump()
    working()
    threading.Event().wait(WORK)


def alarm():
    """Nothing in /proc shows the alarm that ends it."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.alarm(WORK)
    pump()
    working()
    signal.pause()


def progress_bar():
    from prompt_toolkit.shortcuts import ProgressBar

    with ProgressBar() as bar:
        for _ in bar(range(WORK)):
            time.sleep(1)


globals()[sys.argv[1]]()
sys.stdout.flush()
os._exit(0)
