import os
import situation
import software
from situation import scene

@scene(
    "orphan", name="before_everything_python2", twin="published/before_host_python2", when="before", needs=["npm", "python2"],
    about="server-everything with its ticker on; its host on the Python SDK 2 was killed before the daemon came",
)
@scene("orphan", twin="published/host_python2", needs=["npm", "python2"])
@scene(
    "orphan", name="everything_python1", twin="published/host_python1", needs=["npm", "python1"], sdk="python1",
    about="server-everything with its ticker on; its host on the Python SDK 1 is killed",
)
@scene(
    "orphan", name="everything_node", twin="published/host_node", needs=["npm"], sdk="node",
    about="server-everything with its ticker on (a socket pair); its host on the Node SDK is killed",
)
def everything_python2(stage, sdk="python2"):
    """server-everything with its ticker on; its host on the Python SDK 2 is killed"""
    host = software.ticking(stage, sdk, "node", software.everything())
    return stage.truth(orphans=host.kill())

@scene(
    "orphan", name="before_filesystem_node", when="before", needs=["npm"],
    cost="it waits to open a FIFO, and nobody knows how the clock was set before the daemon came: the FIFO may be the younger one",
    about="server-filesystem blocked in a read; its host on the Node SDK was killed before the daemon came",
)
@scene("orphan", needs=["npm"])
@scene(
    "orphan", name="filesystem_python2", needs=["npm", "python2"], sdk="python2",
    about="server-filesystem blocked in a read, as on a network mount that went away; its host on the Python SDK 2 is killed",
)
def filesystem_node(stage, sdk="node"):
    """server-filesystem blocked in a read, as on a network mount that went away; its host on the Node SDK is killed"""
    host = software.reading(stage, sdk)
    return stage.truth(orphans=host.kill())

@scene(
    "orphan", name="before_git_hook_hangs", twin="published/before_git_hook_job", when="before", needs=["python2"],
    about="mcp-server-git (its wire is not on fd 0) waits for a hook that never ends; its host was killed before the daemon came",
)
@scene("orphan", twin="published/git_hook_job", needs=["python2"])
def git_hook_hangs(stage):
    """mcp-server-git commits and waits for a hook that never ends; its host is killed"""
    files = software.repository(stage, "pre-commit", f"""
        echo $$ > {stage.dir}/hook.pid
        exec tail -f /dev/null
    """)
    how = {"then": ["git_commit", {"repo_path": files, "message": "one"}]}
    host = software.Host(stage, "python2", software.venv_bin("PYTHON2", "mcp-server-git"), "--repository", files, **how)
    software.started_as(stage, "tail", "-f", "null")
    tree = software.below(host.process)
    return stage.killed(host, orphans=tree)

@scene(
    "in use", name="before_git_hook_job", twin="published/before_git_hook_hangs", when="before", needs=["python2"],
    about="the job of a post-commit hook of mcp-server-git, whose session had ended cleanly before the daemon came",
)
@scene("in use", twin="published/git_hook_hangs", needs=["python2"])
def git_hook_job(stage):
    """mcp-server-git committed, a post-commit hook started a job in a session of its own; the session ended cleanly"""
    files = software.repository(stage, "post-commit", f"""
        setsid sh -c 'echo $$ > {stage.dir}/job.pid; while sleep 0.2; do echo built >> {stage.dir}/job.log; done' < /dev/null > /dev/null 2>&1 &
    """)
    call = ["git_commit", {"repo_path": files, "message": "one"}]
    host = software.Host(stage, "python2", software.venv_bin("PYTHON2", "mcp-server-git"), "--repository", files, call=call)
    stage.grows("job.log")
    with open(f"{stage.dir}/job.pid") as f:
        job = situation.Process(f.read())
    server = host.close()
    software.within("the server ends with its session", lambda: not any(p.alive() for p in server))
    return stage.truth(in_use=[job])

@scene(
    "in use", name="before_host_python2", twin="published/before_everything_python2", when="before", needs=["npm", "python2"],
    about="server-everything and mcp-server-time below living hosts on the Python SDK 2, older than the daemon",
)
@scene("in use", twin="published/everything_python2", needs=["npm", "python2"])
@scene(
    "in use", name="host_python1", twin="published/everything_python1", needs=["npm", "python1"], sdk="python1",
    about="server-everything, ticker on, and server-filesystem below a living host on the Python SDK 1",
)
@scene(
    "in use", name="host_node", twin="published/everything_node", needs=["npm"], sdk="node",
    about="server-everything, ticker on, and server-memory (socket pairs) below a living host on the Node SDK",
)
def host_python2(stage, sdk="python2"):
    """server-everything, mcp-server-time (its wire is not on fd 0) below living hosts on the Python SDK 2"""
    one = software.ticking(stage, sdk, "node", software.everything(), use=True, name="one")
    other = {
        "node": lambda: [software.npm_bin("mcp-server-memory")],
        "python1": lambda: [software.npm_bin("mcp-server-filesystem"), stage.dir],
        "python2": lambda: [software.venv_bin("PYTHON2", "mcp-server-time")],
    }[sdk]()
    two = software.Host(stage, sdk, *other, use=True, name="two")
    return stage.truth(in_use=[one.process, *one.server, two.process, *two.server])

@scene(
    "orphan", name="before_npx_chain", twin="published/before_wrapper_killed", when="before", needs=["npm", "python2"],
    about="npm exec > sh > server-everything with its ticker on; the host was killed before the daemon came",
)
@scene("orphan", twin="published/wrapper_killed", needs=["npm", "python2"])
def npx_chain(stage):
    """npm exec > sh > server-everything with its ticker on; the host on the Python SDK 2 is killed"""
    host = software.ticking(stage, "python2", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=3)
    return stage.truth(orphans=host.kill())

@scene("mixed", twin="published/everything_node", needs=["npm"])
def npx_closed(stage):
    """the Node SDK closes the session of an npx chain: npm and sh die, the server, abandoned, does not; the host lives"""
    how = {"cwd": software.fixture("NPM"), "programs": 3, "close": f"{stage.dir}/go/close"}
    host = software.ticking(stage, "node", *software.NPX, "@modelcontextprotocol/server-everything", **how)
    *wrapper, server = host.server
    stage.go("close")
    software.within("the wrapper is gone", lambda: not any(p.alive() for p in wrapper))
    return stage.truth(in_use=[host.process], orphans=[server], note="abandoned: its stdin is hung up, the host could still read its stdout")

@scene("in use", twin="published/pool_workers_python2", needs=["npm", "python2"])
def pool_host(stage):
    """a living host with forked pool workers that inherited the wire"""
    host = software.Host(stage, "python2", "node", software.everything(), pool=2, use=True)
    return stage.truth(in_use=[host.process, *host.server, *host.workers])

@scene("orphan", twin="published/pool_host", needs=["npm", "python2"])
@scene(
    "orphan", name="pool_workers_python1", twin="published/pool_host", needs=["npm", "python1"], sdk="python1",
    about="forked pool workers of the killed host (Python SDK 1) hold the wire's other end",
)
def pool_workers_python2(stage, sdk="python2"):
    """forked pool workers of the killed host (Python SDK 2) hold the wire's other end"""
    host = software.Host(stage, sdk, "node", software.everything(), pool=2)
    return stage.truth(orphans=host.kill(), may_end=host.workers)

@scene("orphan", twin="published/host_python2", needs=["python2"])
def uvx_hung(stage):
    """uvx > mcp-server-time blocked in its start, in a read of time zones that never ends; the host on the Python SDK 2 is killed"""
    zones = f"{stage.dir}/zones"
    os.mkdir(zones)
    how = {"env": {"PYTHONTZPATH": zones}, "mute": True}
    with software.hung_mount(f"{zones}/Hung"):
        host = software.Host(stage, "python2", software.venv_bin("PYTHON2", "uvx"), "mcp-server-time", "--local-timezone", "UTC", **how)
        def hung():
            tree = software.below(host.process)
            return len(tree) == 2 and software.hangs(tree[1])
        software.within("the server waits for the mount", hung)
    tree = software.below(host.process)
    return stage.killed(host, orphans=tree)

@scene(
    "in use", name="before_wrapper_killed", twin="published/before_npx_chain", when="before", needs=["npm", "python2"],
    about="only npm was killed before the daemon came: the rest is pid 1's, its host goes on using it",
)
@scene("in use", twin="published/npx_chain", needs=["npm", "python2"])
def wrapper_killed(stage):
    """npm exec > sh > server-everything; only npm is killed: the rest is pid 1's, its host goes on using it"""
    host = software.ticking(stage, "python2", *software.NPX, "@modelcontextprotocol/server-everything", cwd=software.fixture("NPM"), programs=3, use=True)
    wrapper, *rest = host.server
    return stage.killed(wrapper, in_use=[host.process, *rest])
