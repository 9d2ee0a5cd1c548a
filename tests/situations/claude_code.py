"""Claude Code in a situation: below a stand-in of its API, which has it call tools."""
import json

import software
from messages_api import Model
from situation import Broken


def claude():
    """Its program."""
    return software.npm_bin("claude")


def claude_runs(stage, *calls, options=(), cwd=None):
    """`claude -p`, below a stand-in of its API that has it call these tools (name, input), one after the other; gives the process."""
    model = Model(calls)
    env = software.environment(stage, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="none", IS_SANDBOX="1")
    argv = [claude(), "-p", "--dangerously-skip-permissions", *options, "--", "run it"]
    with open(f"{stage.dir}/claude.out", "w") as out:
        return stage.run(*argv, env=env, stdout=out, cwd=cwd or f"{stage.dir}/home")


def claude_ended(stage, process):
    """Wait until it has ended by itself, with its work done."""
    stage.go("end")
    software.within("claude ends by itself", lambda: not process.alive())
    process.bury()
    with open(f"{stage.dir}/claude.out") as f:
        said = f.read()
    if "done" not in said:
        raise Broken(f"claude says {said!r}")


def bash(stage, command):
    """Claude Code has its Bash tool run one command line, and stays until `claude_ended` is told; gives its process."""
    stay = f"while [ ! -e {stage.dir}/go/end ]; do sleep 0.1; done"
    return claude_runs(stage, ("Bash", {"command": command}), ("Bash", {"command": stay}))


def configure(stage, **servers):
    """A file for --mcp-config; gives its path."""
    stage.write("servers.json", json.dumps({"mcpServers": servers}))
    return f"{stage.dir}/servers.json"
