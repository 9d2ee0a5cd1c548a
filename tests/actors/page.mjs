// A person at the web page: headless chromium, three widths, both colour schemes. Each line of standard input is a step;
// its answer is one line: "ok", or what is wrong. Arguments: the folder of the npm project, chromium, the address of the
// page, the name of the server that will be left behind, and a folder for pictures.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const [npm, executablePath, address, server, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(npm, "package.json"))("playwright-core");
const VIEWS = [[360, "light"], [800, "dark"], [1280, "light"], [1280, "dark"]];
const PATIENCE = 20_000;

let browser;
let mayFail = false;
const views = [];
const wrong = [];

async function open() {
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  for (const [width, scheme] of VIEWS) {
    const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme: scheme });
    const name = `${width} ${scheme}`;
    page.setDefaultTimeout(PATIENCE);
    // While the daemon is gone, that it cannot be reached is told on the console, too.
    page.on("console", (said) => mayFail || wrong.push(`${name}: ${said.type()}: ${said.text()}`));
    page.on("pageerror", (error) => wrong.push(`${name}: ${error}`));
    page.on("request", (request) => request.url().startsWith(address) || request.url().startsWith("data:") || wrong.push(`${name}: asks ${request.url()}`));
    const answer = await page.goto(address);
    assert.equal(answer.status(), 200);
    views.push({ page, name, width, scheme });
  }
  for (const { page, width, scheme } of views) {
    await page.waitForFunction((name) => document.querySelector("#tree")?.textContent.includes(name), server);
    await page.waitForFunction(() => document.querySelector("#chart").textContent.includes("Nothing leaked"));
    assert.equal(await page.textContent("#link"), "live");
    assert.equal(await page.textContent("#verdict"), "Nothing is left behind.");
    assert.ok(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), `${width}: wider than the window`);
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/)[0]);
    assert.ok(scheme === "dark" ? back < 60 : back > 200, `${scheme}: the background is ${back}`);
  }
  await shoot("empty");
}

async function orphan() {
  for (const { page } of views) {
    await page.waitForFunction(() => /^1 orphan holds \d+ MB\.$/.test(document.querySelector("#verdict").textContent));
    // The event came by itself, with the evidence in words.
    await page.waitForFunction((name) => [...document.querySelectorAll("#events li")].some((one) => one.textContent.includes(name) && one.textContent.includes("owner exited")), server);
    assert.match(await page.textContent("#tree .server:has(.orphan) .why"), /owner exited/i);
    assert.match(await page.title(), /^1 orphan/);
    // The past is read again some seconds later.
    await page.waitForFunction(() => document.querySelectorAll("#chart rect").length > 0 && document.querySelectorAll("#runs tbody tr").length === 1);
  }
  await shoot("orphan");
}

/** More generations leaked: each has its own colour and row. */
async function generations() {
  for (const { page } of views) {
    await page.goto(`${address}?range=10m`);
    await page.waitForFunction(() => /^4 orphans hold \d+ MB\.$/.test(document.querySelector("#verdict").textContent));
    await page.waitForFunction(() => document.querySelectorAll("#runs tbody tr").length === 3);
    const fills = await page.evaluate(() => new Set([...document.querySelectorAll("#chart rect")].map((one) => getComputedStyle(one).fill)).size);
    assert.equal(fills, 3);
    assert.ok(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), "wider than the window");
  }
  await shoot("generations");
}

/** Without a mouse: the skip link, the ranges, the chart, the filter, the tree, Back. */
async function keyboard() {
  const { page } = views.find(({ width }) => width === 1280);
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  await press("Tab");
  assert.equal(await focused(), "Skip to the agents");
  const reached = [];
  while (!reached.includes("30 d") && reached.length < 30) {
    await press("Tab");
    reached.push(await focused());
  }
  await press("Enter");
  assert.match(page.url(), /\?range=30d$/);
  await page.waitForFunction(() => document.querySelector("#range [aria-current]").textContent === "30 d");
  await page.waitForFunction(() => document.querySelector("#runs tbody tr"));
  await press("Tab");
  assert.equal(await focused(), "chart");
  await press("ArrowLeft");
  assert.match(await page.textContent("#readout"), /\d+ MB/);
  await press("/");
  assert.equal(await focused(), "filter");
  await page.keyboard.type("nothing is called this");
  await page.waitForFunction(() => document.querySelector("#nobody").textContent === "Nothing matches.");
  assert.match(page.url(), /q=nothing/);
  await press("Escape");
  await page.waitForFunction((name) => document.querySelector("#tree").textContent.includes(name), server);
  await page.locator("#tree summary").first().focus();
  await press("Enter");
  assert.equal(await page.locator("#tree details").first().getAttribute("open"), null);
  // What was closed stays closed when the next state comes.
  await page.waitForTimeout(6000);
  assert.equal(await page.locator("#tree details").first().getAttribute("open"), null);
  await press("Enter");
  await page.goBack();
  assert.ok(!page.url().includes("range"));
  await page.waitForFunction(() => document.querySelector("#range [aria-current]").textContent === "24 h");
  // An address that somebody was sent.
  await page.goto(`${address}?range=7d&by=number&show=orphan&q=${server.slice(0, 4)}`);
  await page.waitForFunction(() => document.querySelector("#tree .server .orphan"));
  assert.equal(await page.textContent("#by [aria-current]"), "Number");
  assert.equal(await page.inputValue("#filter"), server.slice(0, 4));
  const names = await page.evaluate(() => [...document.querySelectorAll("a, button, input, summary, [tabindex='0']")].filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.labels?.length)).map((one) => one.outerHTML));
  assert.deepEqual(names, [], "without a name for a screen reader");
}

/** The daemon will be gone: the console may say so. */
async function lose() {
  mayFail = true;
}

async function gone() {
  for (const { page } of views) {
    await page.waitForFunction(() => document.querySelector("#link").textContent.startsWith("not connected"));
    assert.match(await page.textContent("#notice"), /^Not connected: what is below is as it was at .*nobody ends orphans\.$/);
    assert.ok(await page.isHidden("#mode"), "it does not say that orphans are ended");
  }
}

/** Another daemon is there. */
async function back() {
  for (const { page } of views) await page.waitForFunction(() => document.querySelector("#link").textContent === "live", null, { timeout: 60_000 });
  mayFail = false;
}

/** Nobody was asked anything else, nothing was said on the console; and what the policy forbids does not happen. */
async function close() {
  assert.deepEqual(wrong, []);
  const [{ page }] = views;
  const broken = await page.evaluate(() => {
    const script = document.createElement("script");
    try { script.textContent = "window.ran = true"; } catch { /* Text is no script. */ }
    document.body.append(script);
    try { document.body.insertAdjacentHTML("beforeend", "<i>parsed</i>"); } catch { /* Nor is it HTML. */ }
    const style = document.createElement("style");
    style.textContent = "body { display: none }";
    document.body.append(style);
    return { ran: Boolean(window.ran), parsed: Boolean(document.querySelector("i")), hidden: getComputedStyle(document.body).display === "none" };
  });
  assert.deepEqual(broken, { ran: false, parsed: false, hidden: false });
  const fetched = await page.evaluate(() => fetch("http://127.0.0.1:9/").then(() => "answered", (error) => String(error)));
  assert.match(fetched, /Failed to fetch/);
  assert.ok(wrong.some((said) => said.includes("Content Security Policy") || said.includes("violates")), wrong.join("\n"));
  await browser.close();
}

async function shoot(what) {
  for (const { page, width, scheme } of views) {
    await page.screenshot({ path: join(pictures, `${what}-${width}-${scheme}.png`), fullPage: true });
  }
}

const steps = { open, orphan, keyboard, generations, lose, gone, back, close };
for await (const line of createInterface({ input: process.stdin })) {
  try {
    await steps[line]();
    console.log("ok");
  } catch (error) {
    console.log(`${line}: ${error.stack}; ${wrong.join("; ")}`.replaceAll("\n", " | "));
  }
}
await browser?.close();
