"""Claude Code's Bash tool ran `nohup sh -c 'echo {} | mcp-server-x | sed .. > results' &`; claude ended, the job goes on"""
import claude_code

TRUTH = "in use"
NEEDS = ["npm", "claude"]
TWIN = "published/claude_ticker"


def build(stage):
    stage.part("mcp-server-x", """
        here()
        sys.stdin.readline()
        while True:
            os.write(1, b'{"part": 1}\\n')
            time.sleep(0.1)
    """)
    results = f"{stage.dir}/results"
    agent = claude_code.bash(stage, f"nohup sh -c 'echo {{}} | mcp-server-x --as x | sed -u s/part/PART/ > {results}' > /dev/null 2>&1 &")
    server = stage.who("x")
    stage.grows("results")
    job = [p for p in stage.everyone() if p.session() == server.session()]
    claude_code.claude_ended(stage, agent)
    return stage.truth(in_use=job)
