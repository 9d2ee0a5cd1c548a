// A home-made MCP host on the Node SDK: starts one server, plays a plan with it, waits to be killed.
//
//     node client.mjs SDK PLAN COMMAND..    SDK: folder of the package; PLAN: {"mute": true, "call": [TOOL, ARGS], "busy": true,
//                                            "use": [FOLDER, NAME], "close": FILE}
//
// Prints one JSON line when the plan is done. `mute` does not wait for the server's first answer, `busy` leaves the call pending; `use` asks the server by itself and counts the answers in
// FOLDER/beats/NAME, a failure is told in FOLDER/broken/NAME; the session is ended properly as soon as the file `close` exists, and the host lives on.
import { existsSync, renameSync, writeFileSync } from "node:fs";

const [sdk, plan, command, ...args] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);

const { mute, call, busy, env, use, close } = JSON.parse(plan);
const transport = new StdioClientTransport({ command, args, env });
const client = new Client({ name: "host", version: "1" });
const connected = client.connect(transport);
if (!mute) await connected;
const { tools } = mute ? { tools: [] } : await client.listTools();
if (call) {
  const answer = client.callTool({ name: call[0], arguments: call[1] });
  // The server has read the call when it answers a later one.
  if (busy) await client.listTools();
  else await answer;
}
const write = (path, text) => {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
};

// Ask the server four times a second until it fails.
const ask = async (folder, name) => {
  for (let count = 1; ; count++) {
    try {
      await client.listTools(undefined, { timeout: 8000 });
    } catch (error) {
      write(`${folder}/broken/${name}`, `${error}`);
      return;
    }
    write(`${folder}/beats/${name}`, `${count}`);
    await new Promise((later) => setTimeout(later, 250));
  }
};

if (use) ask(...use);
console.log(JSON.stringify({ ready: tools.map((t) => t.name), server: transport.pid }));
const closing = setInterval(async () => {
  if (close && existsSync(close)) {
    clearInterval(closing);
    setInterval(() => {}, 1 << 30);
    await client.close();
  }
}, 50);
