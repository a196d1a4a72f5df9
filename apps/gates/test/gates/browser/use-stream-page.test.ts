/** The page of the examples with `useStream`, in a real Chromium, against a server in another process. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { buildPage } from "../../../src/browser/build-page.ts";
import { type Browser, type BrowserPage, openBrowser } from "../../../src/browser/open-browser.ts";

const program = fileURLToPath(new URL("../../../../examples/src/chat-page.ts", import.meta.url));
const screens =
  process.env["STATEWRIGHT_SCREENS"] ?? fileURLToPath(new URL("../../../.reports/screens/", import.meta.url));
const tokens = { ann: "ann-has-a-long-token", bob: "bob-has-a-long-token" };

let built = "";
let browser: Browser | undefined;
beforeAll(async () => {
  built = buildPage("use-stream");
  browser = await openBrowser();
  mkdirSync(screens, { recursive: true });
}, 300_000);
afterAll(() => browser?.close());

interface Server {
  readonly url: string;
  /** Lets the story go on by this many words. */
  readonly say: (words: number) => void;
  readonly kill: () => Promise<void>;
}

async function killChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

async function startServer(file: string, port = 0): Promise<Server> {
  const env = { ...process.env, CHAT_PAGE_FOLDER: built, CHAT_PAGE_FILE: file, CHAT_PAGE_STEPPED: "1" };
  const child = spawn(process.execPath, [program, String(port)], { env, stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => killChild(child));
  const say = (words: number): void => void child.stdin.write(`${words}\n`);
  for await (const url of createInterface({ input: child.stdout })) return { url, say, kill: () => killChild(child) };
  throw new Error("the server of the page ended before it was ready");
}

interface Desk {
  readonly server: Server;
  readonly file: string;
  readonly page: BrowserPage;
}

async function openDesk(): Promise<Desk> {
  const folder = mkdtempSync(join(tmpdir(), "use-stream-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "chats.db");
  const server = await startServer(file);
  return { server, file, page: await openPage(server.url, tokens.ann) };
}

async function openPage(url: string, token: string): Promise<BrowserPage> {
  if (browser === undefined) throw new Error("the browser did not start");
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  page.on("pageerror", (error) => {
    console.error("error in the page:", error);
  });
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(url);
  await page.type("#token", token);
  await page.click("button[type=submit]");
  await page.waitForSelector(".composer");
  return page;
}

async function send(page: BrowserPage, text: string): Promise<void> {
  await page.type(".composer textarea", text);
  await page.click(".composer button.primary");
}

/** Text of the page. */
async function read(page: BrowserPage, selector = "body"): Promise<string> {
  return String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`));
}

function waitForText(page: BrowserPage, text: string, selector = "body"): Promise<unknown> {
  const place = JSON.stringify(selector);
  return page.waitForFunction(`(document.querySelector(${place})?.innerText ?? "").includes(${JSON.stringify(text)})`, {
    timeout: 30_000,
  });
}

function waitForRest(page: BrowserPage): Promise<unknown> {
  return page.waitForFunction(`document.querySelector(".composer button.primary") !== null`, { timeout: 30_000 });
}

async function clickButton(page: BrowserPage, name: string): Promise<void> {
  const find = `[...document.querySelectorAll("button")].find((button) => button.innerText === ${JSON.stringify(name)})`;
  await page.waitForFunction(`${find} !== undefined`);
  await page.evaluate(`${find}.click()`);
}

const story = Array.from({ length: 60 }, (_, index) => `word${index + 1} `)
  .join("")
  .trim();

test("a wrong token is refused on the page, and a right one opens the chat", async () => {
  const { page } = await openDesk();
  await clickButton(page, "Sign out");
  await page.type("#token", "a-token-of-nobody-at-all");
  await page.click("button[type=submit]");
  await waitForText(page, "This token is not accepted.");
  await page.screenshot({ path: join(screens, "use-stream-refused.png") });
  await page.type("#token", tokens.ann);
  await page.click("button[type=submit]");
  await waitForText(page, "What can I do for you?");
});

test("a person approves a call and denies another, at all sizes in both themes without a sideways scroll", async () => {
  const { page } = await openDesk();
  await page.screenshot({ path: join(screens, "use-stream-empty.png") });
  await send(page, "Please pay Ada.");
  await clickButton(page, "Approve");
  await waitForText(page, "That is done.");
  await waitForRest(page);
  expect(await read(page)).toContain("Paid 25 euros to Ada.");
  await send(page, "Please pay Ada again.");
  await waitForText(page, "Needs your approval");
  for (const theme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    for (const [width, height] of [
      [390, 844],
      [768, 1024],
      [1280, 800],
    ] as const) {
      await page.setViewport({ width, height });
      await page.screenshot({ path: join(screens, `use-stream-${theme}-${width}.png`) });
      expect([width, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([width, width]);
    }
    expect([theme, await page.evaluate(findLowContrast)]).toEqual([theme, []]);
  }
  await page.type(".approval input", "once is enough");
  await clickButton(page, "Deny");
  await waitForText(page, "I did not do it.");
  expect(await read(page, ".output-error")).toContain("once is enough");
});

/** Lists texts whose contrast to their background is below 4.5, as WCAG 2 computes it. */
const findLowContrast = `(() => {
  const parse = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const getBackground = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
    if (!hasText || element.closest("button:disabled, option") !== null || element.offsetParent === null) continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(getBackground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push(element.className + " " + element.textContent.slice(0, 30) + " " + contrast.toFixed(2));
  }
  return low;
})()`;

test("a reload in the middle of a word shows each word once", async () => {
  const { page, server } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(12);
  await waitForText(page, "word12");
  await page.reload();
  await waitForText(page, "word12");
  server.say(48);
  await waitForText(page, "word60");
  await waitForRest(page);
  expect((await read(page, ".message.assistant .text")).trim()).toBe(story);
});

test("Stop ends the run, and the next message is answered", async () => {
  const { page, server } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(5);
  await waitForText(page, "word5");
  await clickButton(page, "Stop");
  await waitForRest(page);
  await send(page, "Hello.");
  await waitForText(page, "You wrote: Hello.");
});

test("a regenerated answer is a second branch, and the first one can be shown again", async () => {
  const { page } = await openDesk();
  await send(page, "One.");
  await waitForText(page, "You wrote: One.");
  await waitForRest(page);
  await clickButton(page, "Regenerate");
  await waitForText(page, "2 / 2");
  await page.screenshot({ path: join(screens, "use-stream-branches.png") });
  await page.click("[aria-label='Previous branch']");
  await waitForText(page, "1 / 2");
  expect(await read(page)).toContain("You wrote: One.");
});

test("a second tab answers an approval, and the first one learns of it", async () => {
  const { page } = await openDesk();
  await send(page, "Please pay Ada.");
  await waitForText(page, "Needs your approval");
  const other = await openPage(String(await page.evaluate("window.location.href")), tokens.ann);
  await clickButton(other, "Approve");
  await waitForText(other, "That is done.");
  await page.bringToFront();
  await clickButton(page, "Approve");
  await waitForText(page, "That is done.");
  expect((await read(page)).split("Paid 25 euros to Ada.")).toHaveLength(2);
  await page.screenshot({ path: join(screens, "use-stream-second-tab.png") });
});

test("a user of another tenant sees nothing of a chat at the same address", async () => {
  const { page } = await openDesk();
  await send(page, "A secret of Ann.");
  await waitForText(page, "You wrote: A secret of Ann.");
  const other = await openPage(String(await page.evaluate("window.location.href")), tokens.bob);
  await waitForText(other, "This chat does not exist.");
  expect(await read(other)).not.toContain("secret");
  await other.screenshot({ path: join(screens, "use-stream-other-tenant.png") });
  await clickButton(other, "Start a new chat");
  await waitForText(other, "What can I do for you?");
  expect(await read(other, ".chats")).toBe("");
});

test("a killed server costs the page nothing: it connects again and shows each word once", async () => {
  const { page, server, file } = await openDesk();
  await send(page, "Tell me a story.");
  server.say(20);
  await waitForText(page, "word20");
  await server.kill();
  const next = await startServer(file, Number(new URL(server.url).port));
  next.say(60);
  await waitForText(page, "word60");
  await waitForRest(page);
  expect((await read(page, ".message.assistant .text")).trim()).toBe(story);
});
