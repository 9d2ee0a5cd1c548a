"""`claude mcp serve` ran `nohup python3 -m http.server &` in its Bash tool; the session ended cleanly"""
import claude_code
import software

TRUTH = "in use"
NEEDS = ["npm", "claude", "python2"]
TWIN = "published/serve_killed_tool"


def build(stage):
    port = software.free_port()
    command = f"nohup python3 -m http.server {port} --bind 127.0.0.1 > {stage.dir}/web.log 2>&1 &"
    host = software.Host(stage, "python2", claude_code.claude(), "mcp", "serve", call=["Bash", {"command": command}])
    web = software.started_as(stage, "http.server", str(port))
    software.within("the web server answers", lambda: software.answers(port))
    server = host.close()
    software.within("claude ends with its session", lambda: not any(p.alive() for p in server if p != web))
    stage.checks.append(lambda: software.answers(port))
    return stage.truth(in_use=[web])
