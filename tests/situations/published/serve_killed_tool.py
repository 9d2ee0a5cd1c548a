"""`claude mcp serve` is in the middle of a command that never comes back; its host is killed"""
import os
import claude_code
import software

TRUTH = "orphan"
NEEDS = ["npm", "claude", "python2"]
TWIN = "published/serve_dev_server"


def build(stage):
    command = f"touch {stage.dir}/go/begun; exec tail -f /dev/null"
    how = {"then": ["Bash", {"command": command, "timeout": 600000}]}
    host = software.Host(stage, "python2", claude_code.claude(), "mcp", "serve", **how)
    software.within("the tool runs", lambda: os.path.exists(f"{stage.dir}/go/begun"))
    tail = software.started_as(stage, "tail", "-f", "null")
    stage.named.update(software.below(host.process))
    server = host.kill()
    return stage.truth(orphans=server, may_end=[tail])
