// A home-made MCP host on the Node SDK: starts one server, plays a plan with it, waits to be killed.
//
//     node client.mjs SDK PLAN COMMAND..    SDK: folder of the package; PLAN: {"call": [TOOL, ARGS], "busy": true}
//
// Prints one JSON line when the plan is done. `busy` leaves the call pending.
const [sdk, plan, command, ...args] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);

const { call, busy, env } = JSON.parse(plan);
const transport = new StdioClientTransport({ command, args, env });
const client = new Client({ name: "host", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
if (call) {
  const answer = client.callTool({ name: call[0], arguments: call[1] });
  // The server has read the call when it answers a later one.
  if (busy) await client.listTools();
  else await answer;
}
console.log(JSON.stringify({ ready: tools.map((t) => t.name), server: transport.pid }));
setInterval(() => {}, 1 << 30);
