/** A real Chromium, driven by puppeteer-core from outside of the workspace. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { installClients } from "../clients/install-clients.ts";

/** Page of a browser: the part of puppeteer's page that the gate uses. */
export interface BrowserPage {
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  close(): Promise<void>;
  bringToFront(): Promise<void>;
  setViewport(size: { readonly width: number; readonly height: number }): Promise<void>;
  emulateMediaFeatures(features: readonly { readonly name: string; readonly value: string }[]): Promise<void>;
  /** Evaluates an expression in the page, as JSON. */
  evaluate(expression: string): Promise<unknown>;
  waitForFunction(expression: string, options?: { readonly timeout?: number }): Promise<unknown>;
  waitForSelector(selector: string): Promise<unknown>;
  click(selector: string): Promise<void>;
  type(selector: string, text: string): Promise<void>;
  screenshot(options: { readonly path: string }): Promise<unknown>;
  on(event: "pageerror", listener: (error: Error) => void): unknown;
}

/** Browser whose pages of one context share their storage. */
export interface Browser {
  newPage(): Promise<BrowserPage>;
  close(): Promise<void>;
}

interface Puppeteer {
  launch(options: {
    readonly executablePath: string;
    readonly headless: boolean;
    readonly args: readonly string[];
  }): Promise<Browser>;
}

const candidates = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** Returns the path of the installed Chromium; undefined if there is none. */
export function findChromium(): string | undefined {
  return candidates.find((file) => file !== undefined && existsSync(file));
}

/** Starts a browser without a window. Throws when no Chromium is installed. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("openBrowser: expected a Chromium, found none. Install the package chromium, or set CHROMIUM.");
  const folder = await installClients({ name: "puppeteer", dependencies: { "puppeteer-core": "25.16.0" } });
  const entry = join(folder, "node_modules/puppeteer-core/lib/puppeteer/puppeteer-core.js");
  const { default: puppeteer }: { readonly default: Puppeteer } = await import(pathToFileURL(entry).href);
  // Chromium refuses its sandbox to root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return await puppeteer.launch({ executablePath, headless: true, args });
}
