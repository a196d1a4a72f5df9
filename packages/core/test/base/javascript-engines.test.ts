/** Core runs on every JavaScript engine: one bundle runs on each engine that is installed. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runPortableProgram } from "../support/portable-program.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-engines-"));
const bundle = join(folder, "program.js");
const page = join(folder, "page.html");
const absent: string[] = [];

/** Recorded output, equal on Node 26.10, Deno 2.9.6, Bun 1.4.5 and Chromium 156. */
const recorded = '{"first":"waiting","sure":true,"said":["3"],"nodes":["ask","tools",""]}';

beforeAll(async () => {
  const entry = join(folder, "entry.ts");
  const from = JSON.stringify(join(import.meta.dirname, "../support/portable-program.ts"));
  writeFileSync(
    entry,
    `import { runPortableProgram } from ${from};
    const told = await runPortableProgram();
    if (typeof document === "undefined") console.log(told);
    else document.body.textContent = told;`,
  );
  const built = await rolldown({
    input: entry,
    platform: "browser",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
  });
  const { output } = await built.write({ file: bundle, format: "esm" });
  const code = output[0].code.replaceAll("</script", "<\\/script");
  writeFileSync(page, `<!doctype html><body><script type="module">${code}</script></body>`);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  writeFileSync(join(import.meta.dirname, "../../.reports/absent.txt"), absent.join("\n"));
});

const browser = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"];
const engines: Readonly<Record<string, () => readonly (readonly [command: string, ...args: string[]])[]>> = {
  Node: () => [[process.execPath, bundle]],
  Deno: () => [["deno", "run", bundle]],
  Bun: () => [["bun", "run", bundle]],
  "a browser": () =>
    ["chromium", "chromium-browser", "google-chrome"].map((command) => [command, ...browser, `file://${page}`]),
};

test.each(Object.keys(engines))("a bundle of core without Node.js modules runs in %s [E71]", (name) => {
  for (const [command, ...args] of engines[name]?.() ?? []) {
    const { error, stdout, stderr } = spawnSync(command, args, {
      encoding: "utf8",
      env: { ...process.env, HOME: folder },
    });
    if (error !== undefined) continue;
    expect(stdout, stderr).toContain(recorded);
    return;
  }
  absent.push(name);
});

test("the recorded output for absent engines equals the output of the source [E71]", async () => {
  expect(await runPortableProgram()).toBe(recorded);
});

test("core can be loaded with require [E71]", () => {
  const required: unknown = createRequire(import.meta.url)("../../src/index.ts");
  expect(required).toMatchObject({ defineGraph: expect.any(Function) });
});
