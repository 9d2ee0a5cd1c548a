"""Claude Code (`claude -p`) is killed; its mcp-remote, below npx, goes on waiting for somebody to sign in"""
import os
import claude_code
import software
import web
from remote_service import Remote

TRUTH = "orphan"
NEEDS = ["npm", "claude"]
TWIN = "published/remote_browser"


def build(stage):
    remote = Remote(signs_in=False)
    npx = {"command": "npx", "args": ["-y", "mcp-remote", f"{remote.url}/mcp"], "env": web.no_browser(stage)}
    options = ["--mcp-config", claude_code.configure(stage, remote=npx)]
    wait = f"touch {stage.dir}/go/begun; exec tail -f /dev/null"
    agent = claude_code.claude_runs(stage, ("Bash", {"command": wait, "timeout": 600000}), options=options, cwd=software.fixture("NPM"))
    software.within("its tool runs", lambda: os.path.exists(f"{stage.dir}/go/begun"))
    server = software.started_as(stage, "node", "mcp-remote")
    software.within("mcp-remote waits for the sign-in", lambda: software.listens(server))
    tree = software.below(agent)
    remote = [p for p in tree if "mcp-remote" in " ".join(p.argv())]
    stage.named.update(tree)
    agent.kill()
    return stage.truth(orphans=remote, may_end=[p for p in tree if p not in remote])
