"""`node build/index.js`, on sockets and without a package's name, stays when its home-made host is killed."""
import os

TRUTH = "orphan"
NEEDS = ["npm"]

SERVER = """
const lines = require("readline").createInterface({ input: process.stdin })
lines.on("line", (line) => {
    const { id } = JSON.parse(line)
    if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: {} }) + "\\n")
})
process.stdout.on("error", () => {})
setInterval(() => {}, 200) // goes on after the end of input
"""


def build(stage):
    os.makedirs(f"{stage.dir}/weather/build")
    stage.write("weather/build/index.js", SERVER)
    host = stage.run(stage.part("chat_host.py", """
        use("host", session("/usr/bin/env", "node", "build/index.js", wire="socket", cwd=f"{DIR}/weather").ask)
    """))
    stage.was_used("host")
    server = stage.find("index.js")
    host.kill()
    return stage.truth(orphans=server)
