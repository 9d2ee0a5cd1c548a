"""The frame of a situation: real processes whose truth is known, which a judge shall tell apart.

A story is a module with situations: functions with the decorator `scene`, which says what is true. `play.py` plays one of them. It puts
everything in place, the cause included, and gives `stage.truth(orphans=.., in_use=..)`. Then one line of JSON is printed, a line (or
the end) of stdin is waited for, one more line tells whether use went on, and all that was started is ended: whoever carries this
situation's folder in the environment, or was named. Processes are ended by pidfd, with their birth compared, and in no other way.

By hand: `./play.py orphans/leaks.py busy_timer` shows the first line; Enter ends it. `--describe` prints what the story states.
"""
import ast
import functools
import json
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

from process import LOOK_AGAIN, PATIENCE, Broken, Process, within

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
VARIABLE = "ORPHAND_SITUATION_DIR"
GROUP = "ORPHAND_SITUATION_PROCS"  # the file with the processes of its control group, where it has one of its own


def names(module):
    """What a module beside this one has by name, and imports whole."""
    with open(f"{HERE}/{module}") as f:
        found = re.findall(r"^(?:def|class|import) (\w+)|^(\w[\w, ]*) = ", f.read(), re.MULTILINE)
    return {name for pair in found for text in pair for name in re.findall(r"\w+", text)}


MEANS = names("means.py") - names("part.py")  # whoever speaks of one of these needs all of that module


class Stage:
    """Where a situation is played: a folder, the processes that carry its name, and what they tell in it."""

    def __init__(self):
        given = os.environ.get(VARIABLE)
        self.dir = given or tempfile.mkdtemp(prefix="orphand-situation-")
        self.ours = not given
        os.environ[VARIABLE] = self.dir
        os.environ.setdefault("ORPHAND_SITUATION", sys.argv[-1])
        os.chmod(self.dir, 0o755)
        if not os.path.exists(f"{self.dir}/nobody"):  # a FIFO that nobody ever writes to
            os.mkfifo(f"{self.dir}/nobody")
        for folder in ("bin", "here", "beats", "broken", "go"):
            os.makedirs(f"{self.dir}/{folder}", exist_ok=True)
            os.chmod(f"{self.dir}/{folder}", 0o777)
        self.library = library(os.path.dirname(self.dir) if given else self.dir)
        self.log = open(f"{self.dir}/log", "a")
        os.chmod(f"{self.dir}/log", 0o666)
        self.named = set()  # processes to end although they do not carry the folder in their environment
        self.checks = []  # further questions whether use goes on
        self.over = set()  # uses that end with the cause
        self.called = {}  # who uses something only when called, by the name of the use
        self.prepare()

    def prepare(self):
        """The servers of most situations: one that answers, and one that works a long job off. Some put others in their place."""
        self.server()
        self.part("mcp-server-batch", "work_off()\n")

    # ---- putting things in place -----------------------------------------------------------------------------

    def put(self, program, text, mode=0o755):
        """A program of this name in the situation's `bin`; gives its path."""
        path = f"{self.dir}/bin/{program}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(textwrap.dedent(text).lstrip("\n"))
        os.chmod(path, mode)
        return path

    def part(self, program, body):
        """A Python program of this name (its name makes it an agent, a server or a bystander) that knows all of `part.py`."""
        means = "from means import *\n" if MEANS.intersection(re.findall(r"\w+", body)) else ""
        head = f"#!{PYTHON} -ISB\nimport sys\nsys.path.insert(0, {self.library!r})\nfrom part import *\n{means}"
        return self.put(program, head + textwrap.dedent(body))

    def server(self, program="mcp-server-fake", leak="timer", starts=0.0):
        """A stand-in server: it answers each line of its input, and at its end leaks as `leak` says (see `part.serve`). So many
        seconds pass before it reads the first: published servers import what they need then."""
        return self.part(program, f"time.sleep({starts})\nserve({leak!r})\n")

    def run(self, *argv, **popen):
        """Start a program whose parent is this script: nobody in the play. Its streams are /dev/null unless told otherwise."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": self.log}
        child = subprocess.Popen([str(a) for a in argv], **{**streams, "cwd": self.dir, **popen})
        child.returncode = 0  # Popen shall not wait for it: Process.bury does
        process = Process(child.pid)
        self.named.add(process)
        return process

    def rests(self, program, body, *args, **popen):
        """Start a program that does this and then rests, and wait until it rests."""
        process = self.run(self.part(program, textwrap.dedent(body) + "\nhere()\nrest()\n"), *args, **popen)
        self.who(program)
        return process

    def agent(self, server="mcp-server-fake"):
        """An agent that starts a server, keeps its wires and rests."""
        return self.rests("claude", f'start("{server}")')

    def closes(self, server, ready=None, wire="pipe"):
        """An agent that starts a server, closes its wires when `ready` is there, and ends when the server has."""
        waits = f"present({ready!r})\n" if ready else ""
        return self.run(self.part("claude", f"server = start({server!r}, wire={wire!r})\n{waits}server.let_go()\nserver.child.wait()\n"))

    def uses(self, program, body, *args, **popen):
        """Start a program that uses something, under its own name (`part.use`), and wait until it has."""
        process = self.run(self.part(program, body), *args, **popen)
        self.beats(program)
        return process

    def when_over(self, program, body, *args, **popen):
        """Start a program that uses something (`part.on_call`), under its own name, when the judgement is over."""
        process = self.run(self.part(program, body), *args, **popen)
        self.when_called(program, process)
        return process

    def listens(self, program, kind):
        """A server that answers calls, too, as `means.listen` takes them."""
        return self.part(program, f'in_background(answer_calls, listen("{kind}"))\nserve()\n')

    def client(self, kind, server):
        """A person who stays connected to a server that listens, and goes on asking."""
        return self.uses("person", f"""
            connection = dial("{kind}", "{server}")
            use("person", lambda: ask_over(connection))
        """)

    # ---- who is there ----------------------------------------------------------------------------------------

    def who(self, alias):
        """The process that announced itself as `alias` (`part.here`), as soon as it has."""
        path = f"{self.dir}/here/{alias}"
        within(f"{alias} announced itself", lambda: os.path.exists(path))
        with open(path) as f:
            process = Process(*map(int, f.read().split()))
        self.named.add(process)
        return process

    def everyone(self):
        """All living processes of this situation, this script apart."""
        mark = f"{VARIABLE}={self.dir}".encode()
        found = {p for p in self.named if p.alive()}
        for entry in self._near():
            if int(entry) != os.getpid():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as f:
                        mine = mark in f.read().split(b"\0")
                except OSError:
                    continue
                process = Process(entry)
                if mine and process.alive():
                    found.add(process)
        return sorted(found, key=lambda p: (p.start, p.pid))

    def _near(self):
        """The numbers of the processes in the control group that this situation was given; without one, of all."""
        group = os.environ.get(GROUP)
        if group is None:
            return [entry for entry in os.listdir("/proc") if entry.isdigit()]
        with open(group) as f:
            return f.read().split()

    def find(self, program, count=1):
        """The processes whose program (or its script) has this base name, as soon as there are `count`."""

        def look():
            named = lambda p: program in (os.path.basename(a) for a in p.argv()[:3])
            found = [p for p in self.everyone() if named(p)]
            # A shell that is about to run another program has its own name for a moment, and what it forks has its arguments,
            # too, until it runs something: on a busy machine that takes long.
            time.sleep(LOOK_AGAIN)
            found = {p.pid: p for p in found if p.alive() and named(p)}
            forked = [p for p in found.values() if p.parent() in found and found[p.parent()].argv() == p.argv()]
            found = [p for p in found.values() if p not in forked]
            return found if len(found) >= count else None

        return within(f"{count} x {program}", look)

    def write(self, path, text=""):
        """A file in the situation's folder, whole at once: it may be what somebody waits for."""
        with open(f"{self.dir}/{path}.new", "w") as f:
            f.write(text)
        os.replace(f"{self.dir}/{path}.new", f"{self.dir}/{path}")

    def go(self, alias):
        """What `part.wait_for(alias)` waits for."""
        self.write(f"go/{alias}")

    def adopted(self, *processes):
        """Wait until these have a new parent that is none of this situation's."""
        for process in processes:
            strangers = lambda p=process: p.parent() not in [q.pid for q in self.everyone()] + [os.getpid()]
            within(f"{process} is adopted", strangers)

    def asleep(self, *processes):
        """Wait until these rest in the kernel: what they still did until then would be work of theirs."""
        for process in processes:
            within(f"{process} sleeps", lambda p=process: p.sleeps())

    # ---- use -------------------------------------------------------------------------------------------------

    def beats(self, who, count=2):
        """Wait until `who` (`part.use`) has used something that often."""
        within(f"{count} uses by {who}", lambda: self._count(who) >= count)

    def was_used(self, who, count=4):
        """The same for a use that is about to end: whether it goes on is not asked."""
        self.beats(who, count)
        self.over.add(who)

    def _count(self, who):
        try:
            with open(f"{self.dir}/beats/{who}") as f:
                return int(f.read() or 0)
        except FileNotFoundError:
            return -1

    def when_called(self, who, process, number=signal.SIGUSR1):
        """The use `who` rests until `process` (`part.on_call`) is sent this signal, which it is when the judgement is over."""
        within(f"{who} can be called", lambda: self._count(who) >= 0)
        self.called[who] = process, number

    def grows(self, path):
        """A check: the file of the situation goes on growing."""
        size = lambda: os.path.getsize(f"{self.dir}/{path}") if os.path.exists(f"{self.dir}/{path}") else 0
        within(f"{path} grows", lambda: size() > 0)

        def check():
            before = size()
            return bool(within(f"{path} goes on", lambda: size() > before, 5))

        self.checks.append(check)

    def use_went_on(self):
        """Whether all use went on until now: None if nothing was in use."""
        users = set(os.listdir(f"{self.dir}/beats")) - self.over
        if not users and not self.checks:
            return None
        try:
            for who in users:
                before = self._count(who)
                broken = f"{self.dir}/broken/{who}"
                if who in self.called:
                    process, number = self.called[who]
                    process.kill(number, wait=False)
                moved = lambda who=who, broken=broken: os.path.exists(broken) or self._count(who) > before
                within(f"{who} goes on", moved, 12)
                if os.path.exists(broken):
                    return False
            return all(check() for check in self.checks)
        except Exception as error:
            print(error, file=self.log, flush=True)
            return False

    # ---- the end ---------------------------------------------------------------------------------------------

    def truth(self, orphans=(), in_use=(), may_end=(), note=""):
        """What is true when everything is in place. A process may be stated by its alias."""
        orphans, in_use, may_end = ([self.who(p) if isinstance(p, str) else p for p in some] for some in (orphans, in_use, may_end))
        for process in [*in_use, *orphans]:
            # A quick judge may have ended an orphan by now, but it must have been there.
            if process.start is None:
                raise Broken(f"{process} never was there: nothing to be judged")
        lists = {"orphans": orphans, "in_use": in_use, "may_end": may_end}
        self.named.update(*lists.values())
        return {**{k: [p.told() for p in v] for k, v in lists.items()}, "note": note}

    def killed(self, process, **truth):
        """Kill this process, and tell what is true then."""
        process.kill()
        return self.truth(**truth)

    def ended(self, process, **truth):
        """Wait until this process has ended by itself, and tell what is true then."""
        within(f"the end of {process}", lambda: not process.alive())
        return self.truth(**truth)

    def end(self):
        """End all that was started."""

        def nobody():
            left = self.everyone()
            for process in left:
                process.kill(wait=False)
            for process in self.named:
                process.bury()
            return not left

        within("the end of everybody", nobody)
        if self.ours:
            shutil.rmtree(self.dir, ignore_errors=True)


def library(folder):
    """Where actors find what they import: compiled once for all situations of a folder, and readable to every user."""
    made = f"{folder}/lib"
    if not os.path.exists(made):
        new = tempfile.mkdtemp(dir=folder)
        for module in ("part.py", "means.py"):
            py_compile.compile(shutil.copy(f"{HERE}/{module}", new))
        os.chmod(new, 0o755)
        try:
            os.rename(new, made)
        except OSError:
            shutil.rmtree(new)  # another situation was quicker
    return made


SCENES = {}  # how to build the situations of the story that was loaded, by name


def scene(truth, name=None, about=None, twin=None, when="watched", needs=(), cost=None, restart=False, **differences):
    """A situation: its function, and what it states (see `describe`). It is called as its function, or `name`; who is of another
    group states that group, too. A function that is several situations has a line for each, with what that is `about` in place
    of a docstring, and the `differences`, which the function is given."""

    def one(build):
        SCENES[name or build.__name__] = functools.partial(build, **differences)
        return build

    return one


def describe(path):
    """What the situations of a story state; it is read, not run."""
    path = os.path.abspath(path)
    with open(path) as f:
        functions = [node for node in ast.parse(f.read(), path).body if isinstance(node, ast.FunctionDef)]
    for function, line in ((function, line) for function in functions for line in reversed(function.decorator_list)):
        said = {word.arg: ast.literal_eval(word.value) for word in line.keywords}
        name = said.get("name") or function.name
        yield {
            "path": path,
            "name": name if "/" in name else f"{os.path.basename(os.path.dirname(path))}/{name}",
            "description": said.get("about") or ast.get_docstring(function) or "",
            "truth": ast.literal_eval(line.args[0]),
            "when": said.get("when", "watched"),
            "needs": said.get("needs", []),
            "twin": said.get("twin"),
            "cost": said.get("cost"),
            "restart": said.get("restart", False),
        }


def play(build, called):
    """Play a situation, which `build` puts in place."""

    def stop(*_):
        raise SystemExit(1)

    # What `nohup .. &` ignores would be ignored by all that is played: a terminal that hangs up would end nobody.
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, stop)
    stage = Stage()
    try:
        truth = build(stage)
        print(json.dumps(truth), flush=True)
        sys.stdin.readline()
        print(json.dumps({"use_went_on": stage.use_went_on()}), flush=True)
    except Exception as error:
        with open(f"{stage.dir}/log") as f:
            sys.exit(f"{called}: {error!r}\n{f.read()}")
    finally:
        stage.end()
