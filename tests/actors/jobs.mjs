// A gateway on the Node SDK that runs many jobs at once, each with a server of its own: node jobs.mjs SDK, the folder of the package.
//
// Rounds come on stdin and reports are printed as in jobs.py. "cancel" closes the client at once; with `again` it aborts what is
// pending by a signal first, and closes the client so many milliseconds later.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [sdk] = process.argv.slice(2);
const { Client } = await import(`${sdk}/dist/esm/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/dist/esm/client/stdio.js`);

const PATIENCE = 60000; // milliseconds for an answer, on a machine under load
const later = (ms) => new Promise((done) => setTimeout(done, ms));
// CLOCK_BOOTTIME in nanoseconds, up to ten milliseconds early.
const now = () => Math.round(Number(readFileSync("/proc/uptime", "ascii").split(" ")[0]) * 1e9);

class Job {
  constructor(plan) {
    this.plan = plan;
    this.leave = false;
    this.aborter = new AbortController();
    this.report = { name: plan.name, end: plan.end, calls: 0, left: null, error: null, hangs: false };
    this.client = new Client({ name: "gateway", version: "1" });
    this.done = false;
    this.over = this.run().finally(() => (this.done = true));
    if (plan.end === "close") setTimeout(() => (this.leave = true), plan.after);
    if (plan.end === "cancel") this.cancelled = later(plan.after).then(() => this.cancel());
  }

  async cancel() {
    this.report.left ??= now();
    if (this.plan.again !== null) {
      this.aborter.abort();
      await later(this.plan.again);
    }
    await this.client.close().catch(() => {});
  }

  async run() {
    try {
      await this.work();
    } catch (error) {
      if (this.report.left === null) {
        this.report.error = `${error}`;
        this.report.left = now();
      }
    }
    await this.client.close().catch(() => {});
  }

  async work() {
    const [command, ...args] = this.plan.command;
    const options = { timeout: PATIENCE, signal: this.aborter.signal };
    await this.client.connect(new StdioClientTransport({ command, args, cwd: process.cwd() }), options);
    if (this.plan.first) await this.call(this.plan.first, options);
    while (!this.leave) {
      await this.call(this.plan.call, options);
      this.report.calls++;
      await later(100);
    }
    await this.call(this.plan.call, options);
    this.report.calls++;
    this.report.left = now();
  }

  async call([name, args], options) {
    const answer = await this.client.callTool({ name, arguments: args }, undefined, options);
    if (answer.isError) throw new Error(`${name}: ${JSON.stringify(answer.content)}`);
  }
}

// The job has been answered, and once more: it is past its opening.
const answered = async (job) => {
  const wanted = job.report.calls + 2;
  while (job.report.calls < wanted && !job.done) await later(20);
};

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const jobs = JSON.parse(line.value).map((plan) => new Job(plan));
  const staying = jobs.filter((job) => job.plan.end === "stay");
  const others = jobs.filter((job) => job.plan.end !== "stay");
  await Promise.all(others.flatMap((job) => [job.over, job.cancelled]));
  await Promise.all(staying.map(answered));
  console.log(JSON.stringify({ settled: staying.length }));
  await lines.next();
  for (const job of staying) job.leave = true;
  await Promise.all(staying.map((job) => job.over));
  console.log(JSON.stringify({ over: jobs.map((job) => job.report) }));
}
