"""Claude Code (`claude -p`) is killed; below npx its server-everything, ticker on, lives on"""
import os
import claude_code
import software

TRUTH = "orphan"
NEEDS = ["npm", "claude"]
TWIN = "published/job_web"


def build(stage):
    config = claude_code.configure(stage, ticker={"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]})
    wait = f"touch {stage.dir}/go/begun; exec tail -f /dev/null"
    calls = [("mcp__ticker__toggle-subscriber-updates", {}), ("Bash", {"command": wait, "timeout": 600000})]
    agent = claude_code.claude_runs(stage, *calls, options=["--mcp-config", config], cwd=software.fixture("NPM"))
    software.within("its tools run", lambda: os.path.exists(f"{stage.dir}/go/begun"))
    tree = software.below(agent)
    server = [p for p in tree if "server-everything" in " ".join(p.argv())]
    stage.named.update(tree)
    agent.kill()
    return stage.truth(orphans=server, may_end=[p for p in tree if p not in server])
