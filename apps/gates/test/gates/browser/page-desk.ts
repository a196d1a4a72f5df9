/** Pages of the examples in a real Chromium, against a server in another process. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { buildPage } from "../../../src/browser/build-page.ts";
import { type Browser, type BrowserPage, openBrowser } from "../../../src/browser/open-browser.ts";

const program = fileURLToPath(new URL("../../../../examples/src/chat-page.ts", import.meta.url));

/** Folder of the screenshots. */
export const screens: string =
  process.env["STATEWRIGHT_SCREENS"] ?? fileURLToPath(new URL("../../../.reports/screens/", import.meta.url));

/** Tokens of two tenants. */
export const tokens: Readonly<Record<"ann" | "bob", string>> = {
  ann: "ann-has-a-long-token",
  bob: "bob-has-a-long-token",
};

/** Server of a page. */
export interface Server {
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

async function startServer(built: string, file: string, port = 0): Promise<Server> {
  const env = { ...process.env, CHAT_PAGE_FOLDER: built, CHAT_PAGE_FILE: file, CHAT_PAGE_STEPPED: "1" };
  const child = spawn(process.execPath, [program, String(port)], { env, stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => killChild(child));
  const say = (words: number): void => void child.stdin.write(`${words}\n`);
  for await (const url of createInterface({ input: child.stdout })) return { url, say, kill: () => killChild(child) };
  throw new Error("the server of the page ended before it was ready");
}

/** Server with a file of its own, and a page that Ann has signed in on. */
export interface Desk {
  readonly server: Server;
  readonly page: BrowserPage;
  /** Starts a server on the file and the port of a dead one. */
  readonly restart: () => Promise<Server>;
}

/** Pages of a test file. */
export interface Desks {
  readonly openDesk: () => Promise<Desk>;
  readonly openPage: (url: string, token: string) => Promise<BrowserPage>;
}

/** Builds a page of the examples before the tests of a file. `query` is a part of the address of each first page. */
export function setUpDesks(name: string, { query = "" }: { readonly query?: string } = {}): Desks {
  let built = "";
  let browser: Browser | undefined;
  beforeAll(async () => {
    built = buildPage(name);
    browser = await openBrowser();
    mkdirSync(screens, { recursive: true });
  }, 300_000);
  afterAll(() => browser?.close());

  const openPage = async (url: string, token: string): Promise<BrowserPage> => {
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
  };
  const openDesk = async (): Promise<Desk> => {
    const folder = mkdtempSync(join(tmpdir(), `${name}-page-`));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "chats.db");
    const server = await startServer(built, file);
    return {
      server,
      page: await openPage(`${server.url}${query}`, tokens.ann),
      restart: () => startServer(built, file, Number(new URL(server.url).port)),
    };
  };
  return { openDesk, openPage };
}

/** Sends a message of the user. */
export async function send(page: BrowserPage, text: string): Promise<void> {
  await page.type(".composer textarea", text);
  await page.click(".composer button.primary");
}

/** Text of the page. */
export async function read(page: BrowserPage, selector = "body"): Promise<string> {
  return String(await page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`));
}

/** Resolves when the page shows a text. */
export function waitForText(page: BrowserPage, text: string, selector = "body"): Promise<unknown> {
  const place = JSON.stringify(selector);
  return page.waitForFunction(`(document.querySelector(${place})?.innerText ?? "").includes(${JSON.stringify(text)})`, {
    timeout: 30_000,
  });
}

/** Resolves when no answer is at work. */
export function waitForRest(page: BrowserPage): Promise<unknown> {
  return page.waitForFunction(`document.querySelector(".composer button.primary") !== null`, { timeout: 30_000 });
}

/** Clicks the first button with a text, as soon as there is one. */
export async function clickButton(page: BrowserPage, name: string): Promise<void> {
  const find = `[...document.querySelectorAll("button")].find((button) => button.innerText === ${JSON.stringify(name)})`;
  await page.waitForFunction(`${find} !== undefined`);
  await page.evaluate(`${find}.click()`);
}

/** Whole story that the model tells word by word. */
export const story: string = Array.from({ length: 60 }, (_, index) => `word${index + 1} `)
  .join("")
  .trim();

/** Lists texts whose contrast to their background is below 4.5, as WCAG 2 computes it. */
export const findLowContrast: string = `(() => {
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
