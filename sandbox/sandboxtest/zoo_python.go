package sandboxtest

import "github.com/sandshell/sandshell/sandbox"

// python returns a command that runs code in python3, with the modules that the rows need.
func python(code string) string {
	return "python3 -c " + quote("import asyncio, ctypes, fcntl, getpass, os, select, selectors, "+
		"signal, socket, subprocess, sys, termios, threading, time, tty\n"+code)
}

// cbreak ends the terminal's line mode until the program ends.
const cbreak = "import atexit; old = termios.tcgetattr(0); atexit.register(termios.tcsetattr, 0, " +
	"termios.TCSANOW, old); tty.setcbreak(0)\n"

const (
	pySay     = `print("got", os.read(0, 100).decode().strip())`
	pyPrompt  = `print("name? ", end="", flush=True)` + "\n"
	pyAsyncio = `
async def main():
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(0, ready.set)
    await ready.wait()
    loop.remove_reader(0)
    ` + pySay + `
asyncio.run(main())`
	pyStreams = `
async def main():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("got", (await reader.readline()).decode().strip())
asyncio.run(main())`
	pyExecutor = `
async def main():
    print("got", (await asyncio.get_running_loop().run_in_executor(None, input, "name? ")))
asyncio.run(main())`
	pyMainGone = `
def work():
    time.sleep(0.2)
    line = os.read(0, 100).decode().strip()
    os.write(1, ("got " + line).encode())
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)`
	pyBusyBeside = `
def work():
    while True: time.sleep(0.2)
threading.Thread(target=work, daemon=True).start()
print("got", input("name? "))`
	pyPipeToo = `
r, w = os.pipe()
select.select([0, r], [], [])
` + pySay
	pyManyDescriptors = `
fds = [os.dup(0) for i in range(200)]
select.select([fds[-1]], [], [])
` + pySay
)

// zooPython are the ways in which Python reads.
var zooPython = []situation{
	{name: "PyInput", needs: "python3", command: python(`print("got", input("name? "))`),
		asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PyInputReadline", needs: "python3", when: `python3 -c "import readline"`,
		command: python(`import readline; print("got", input("name? "))`), asks: sandbox.Keys,
		shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PyGetpass", needs: "python3", command: python(
		`print("got", getpass.getpass("password: "))`), asks: sandbox.Secret, shows: "password: ",
		answer: "ann\n", says: "got ann"},
	{name: "PyReadline", needs: "python3", command: python(`print("got", sys.stdin.readline())`),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyReadAll", needs: "python3", command: python(`print("got", sys.stdin.read())`),
		asks: sandbox.Line, answer: "ann\n\x04", says: "got ann"},
	{name: "PyLines", needs: "python3", command: python(
		`for line in sys.stdin: print("got", line)`), asks: sandbox.Line, answer: "ann\n",
		then: sandbox.Line, says: "got ann"},
	{name: "PyRead", needs: "python3", command: python(pySay), asks: sandbox.Line, answer: "ann\n",
		says: "got ann"},
	{name: "PyReadv", needs: "python3", command: python(
		`b = bytearray(100); n = os.readv(0, [b]); print("got", b[:n].decode().strip())`),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PySplice", needs: "python3", when: `python3 -c "import os; os.splice"`,
		command: python(
			`r, w = os.pipe(); os.splice(0, w, 100); print("got", os.read(r, 100).decode().strip())`), asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PySelect", needs: "python3", command: python(`select.select([0], [], [])` + "\n" +
		pySay), asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PySelectTimeout", needs: "python3", command: python(`select.select([0], [], [], 30)` +
		"\n" + pySay), asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PySelectPipeToo", plain: plainPolls, needs: "python3", command: python(pyPipeToo),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PySelectHighDescriptor", plain: plainPolls, needs: "python3",
		command: python(pyManyDescriptors), asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyPoll", plain: plainPolls, needs: "python3",
		command: python(`p = select.poll(); p.register(0, select.POLLIN); p.poll()` + "\n" + pySay),
		asks:    sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyPollTimeout", plain: plainPolls, needs: "python3",
		command: python(`p = select.poll(); p.register(0, select.POLLIN); p.poll(30000)` + "\n" +
			pySay), asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyEpoll", needs: "python3", command: python(
		`p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()` + "\n" + pySay),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyEpollTimeout", needs: "python3", command: python(
		`p = select.epoll(); p.register(0, select.EPOLLIN); p.poll(30)` + "\n" + pySay),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyEpollWithin", plain: plainPolls, needs: "python3",
		command: python(
			`p = select.epoll(); p.register(0, select.EPOLLIN); select.select([p], [], [])` + "\n" +
				pySay), asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PySelectors", needs: "python3", command: python(pyPrompt +
		`s = selectors.DefaultSelector(); s.register(0, selectors.EVENT_READ); s.select()` + "\n" +
		pySay), asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PyAsyncio", needs: "python3", command: python(pyAsyncio), asks: sandbox.Line,
		answer: "ann\n", says: "got ann"},
	{name: "PyAsyncioStream", needs: "python3", command: python(pyStreams), asks: sandbox.Line,
		answer: "ann\n", says: "got ann"},
	{name: "PyAsyncioExecutor", needs: "python3", command: python(pyExecutor), asks: sandbox.Line,
		shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PyNonBlocking", needs: "python3", command: python(
		`os.set_blocking(0, False); select.select([0], [], [])` + "\n" +
			`x = os.read(0, 100); os.set_blocking(0, True); print("got", x.decode())`),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyOpensTTY", needs: "python3", command: python(
		`print("got", open("/dev/tty").readline())`), asks: sandbox.Line, answer: "ann\n",
		says: "got ann"},
	{name: "PyRawKey", needs: "python3", command: python(cbreak +
		`tty.setraw(0); print("got", sys.stdin.read(1), end="\r\n")`), asks: sandbox.Keys,
		answer: "y", says: "got y"},
	{name: "PyCbreakSelect", needs: "python3", command: python(cbreak +
		`select.select([0], [], [])` + "\n" + pySay), asks: sandbox.Keys, answer: "y",
		says: "got y"},
	{name: "PyThread", needs: "python3", command: python(
		`t = threading.Thread(target=lambda: print("got", input("name? "))); t.start(); t.join()`),
		asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PyThreadBeside", needs: "python3", command: python(pyBusyBeside), asks: sandbox.Line,
		shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PyMainThreadGone", needs: "python3", command: python(pyMainGone), asks: sandbox.Line,
		answer: "ann\n", says: "got ann"},
	{name: "PyFork", needs: "python3", command: python(`pid = os.fork()` + "\n" +
		`if pid: os.waitpid(pid, 0)` + "\n" + `else: print("got", input("name? "))`),
		asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
	{name: "PySubprocess", needs: "python3", command: python(
		`sys.exit(subprocess.call(["sh", "-c", "printf 'name? '; read x; echo \"got $x\"; exit 6"]))`), asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann", code: 6},
	{name: "PySetsid", needs: "python3", command: python(
		`subprocess.call(["sh", "-c", "read x; echo \"got $x\""], start_new_session=True)`),
		asks: sandbox.Line, answer: "ann\n", says: "got ann"},
	{name: "PyCurses", needs: "python3", when: `python3 -c "import curses"`,
		command: python(
			`import curses; curses.wrapper(lambda s: (s.addstr(2, 3, "in curses"), s.refresh(), s.getkey()))`), asks: sandbox.Keys, shows: "in curses", answer: "x"},
	{name: "PyCursesTimeout", needs: "python3", when: `python3 -c "import curses"`,
		command: python(
			`import curses; curses.wrapper(lambda s: (s.addstr(2, 3, "in curses"), s.refresh(), s.timeout(30000), s.getkey()))`), asks: sandbox.Keys, shows: "in curses", answer: "x"},
	{name: "PyPromptToolkit", needs: "python3", when: `python3 -c "import prompt_toolkit"`,
		command: python(`from prompt_toolkit import prompt; print("got", prompt("name? "))`),
		asks:    sandbox.Keys, shows: "name?", answer: "ann\r", says: "got ann"},
	{name: "PyREPL", needs: "python3", command: `python3 -q`, asks: sandbox.Keys, or: sandbox.Line,
		shows: ">>> ", answer: "exit(3)\n", code: 3},
	{name: "PyInteractive", needs: "python3", command: `python3 -q -i -c 'x = 6'`,
		asks: sandbox.Keys, or: sandbox.Line, shows: ">>> ", answer: "exit(x)\n", code: 6},
	{name: "PyREPLContinues", needs: "python3", command: `python3 -q`, asks: sandbox.Keys,
		or: sandbox.Line, answer: "if 1:\n", then: sandbox.Keys, says: "... "},
	{name: "PyAsyncioREPL", needs: "python3", command: `python3 -m asyncio`, asks: sandbox.Keys,
		or: sandbox.Line, shows: ">>> ", answer: "exit(3)\n", code: 3},
	{name: "PyCode", needs: "python3", command: python(`import code; code.interact()`),
		asks: sandbox.Line, or: sandbox.Keys, shows: ">>> ", answer: "exit(3)\n", code: 3},
	{name: "PyPdb", needs: "python3", setup: `echo 'x = "ann"; print("got", x)' >p.py`,
		command: `python3 -m pdb p.py`, asks: sandbox.Keys, or: sandbox.Line, shows: "(Pdb) ",
		answer: "next\n", then: sandbox.Keys, says: "got ann"},
	{name: "PyBreakpoint", needs: "python3", command: python(`breakpoint(); print("got ann")`),
		asks: sandbox.Keys, or: sandbox.Line, shows: "(Pdb) ", answer: "continue\n",
		says: "got ann"},
	{name: "PyPtySpawn", needs: "python3", command: python(
		`import pty; pty.spawn(["sh", "-c", "printf 'name? '; read x; echo \"got $x\""])`),
		asks: sandbox.Line, shows: "name? ", answer: "ann\n", says: "got ann"},
}
