import { readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPlugin } from "@statewright/plugins";
import { call } from "@statewright/testing";
import { expect, onTestFinished, test } from "vitest";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";
import { talk } from "../../support/talk.ts";

const root = join(import.meta.dirname, "../../../../..");
const counting = join(import.meta.dirname, "counting.mjs");
const page = readFileSync(join(root, "docs/plugins.md"), "utf8");

test("the plugins program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "plugins-page-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await copyFile(join(root, "apps/examples/tools/typescript/json_query.ts"), join(folder, "json_query.ts"));
  await copyFile(counting, join(folder, "counting.mjs"));
  const printed = await runProgram(new URL("plugins.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("plugins.md"));
});

test("the plugins on the page equal the tested plugins", () => {
  expect(page).toContain(readFileSync(counting, "utf8"));
  expect(page).toContain(readFileSync(join(root, "apps/examples/tools/python/stats.py"), "utf8"));
});

test("the plugin of the page receives a cancel and exits on request", async () => {
  const plugin = await loadPlugin({ command: process.execPath, args: [counting] });
  const { status, results } = await talk(plugin.tools, [call("count_up", { to: 1_000_000 })], {}, (run, event) => {
    if (event.type === "tool.update") void run.cancel("enough");
  });
  expect([status, results[0]?.error?.kind]).toEqual(["cancelled", "cancelled"]);
  await plugin.close();
  expect(plugin.pid).toBeUndefined();
});
