import { readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPlugin, type PluginOptions } from "@statewright/plugins";
import { call } from "@statewright/testing";
import { defineTool } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";
import { talk, textOfResult } from "../../support/talk.ts";

const description = "A tool of this test.";
const stars = join(import.meta.dirname, "stars-plugin.mjs");

/** Starts a plugin; the test closes it. */
async function started(options: Partial<PluginOptions>) {
  const plugin = await loadPlugin({ command: process.execPath, args: [stars], ...options });
  onTestFinished(() => plugin.close());
  return plugin;
}

test("the bitop-dev/agent migration program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-bitop-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await copyFile(stars, join(folder, "stars-plugin.mjs"));
  const printed = await runProgram(new URL("bitop.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("reference/coming-from-bitop.md"));
});

test("the plugin on the bitop page equals the tested plugin", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../../../docs/reference/coming-from-bitop.md"), "utf8");
  expect(page).toContain(readFileSync(stars, "utf8"));
});

test("a plugin keeps one process over calls and runs, and its stderr is a log", async () => {
  const lines: string[] = [];
  const plugin = await started({ onStderr: (line) => lines.push(line) });
  const { pid } = plugin;
  for (const count of [1, 2]) {
    const { results } = await talk(plugin.tools, [call("stars", { count })]);
    expect(results.map(textOfResult)).toEqual(["*".repeat(count)]);
  }
  expect(plugin.pid).toBe(pid);
  await plugin.close();
  expect(lines).toEqual(["drew 1", "drew 2"]);
});

test("arguments that do not fit a plugin's schema do not reach the plugin and are not coerced", async () => {
  const lines: string[] = [];
  const plugin = await started({ onStderr: (line) => lines.push(line) });
  const { results } = await talk(plugin.tools, [call("stars", { count: "5" })]);
  await plugin.close();
  expect(results[0]?.error?.kind).toBe("invalid_args");
  expect(lines).toEqual([]);
});

test("a plugin with a contradictory schema is refused at load", async () => {
  const definition = { name: "odd", description, parameters: { type: "object", properties: { a: { type: "word" } } } };
  const script = `process.stdin.on("data", () => console.log(${JSON.stringify(JSON.stringify(definition))}))`;
  await expect(loadPlugin({ command: process.execPath, args: ["-e", script] })).rejects.toMatchObject({
    code: "invalid_tool",
  });
});

test("a plugin that exits during a call fails only that call", async () => {
  const description = "Ends when it is told to.";
  const definition = JSON.stringify({ name: "ends", description, parameters: { type: "object" } });
  const script = `process.stdin.on("data", (data) => {
    const { type, params } = JSON.parse(data);
    if (params?.end) process.exit(7);
    console.log(type === "describe" ? ${JSON.stringify(definition)} : '{"content":[{"type":"text","text":"here"}]}');
  });`;
  const plugin = await started({ args: ["-e", script] });
  const { pid } = plugin;
  const { results, status } = await talk(plugin.tools, [[call("ends", { end: true }), call("ends", {})]]);
  expect(results.map((result) => result.error?.kind ?? textOfResult(result))).toEqual(["crashed", "here"]);
  expect([status, plugin.pid === pid]).toEqual(["done", false]);
});

test("a returned error, also next to content, is a tool error, and an error text is not", async () => {
  const returned: readonly unknown[] = [
    new Error("city not found: X"),
    { content: "city not found: X", error: true },
    "Error: city not found: X",
  ];
  const finds = defineTool({
    name: "finds",
    description,
    input: z.object({ nth: z.int() }),
    run: ({ nth }) => returned[nth],
  });
  const calls = returned.map((_each, nth) => call("finds", { nth }));
  const { results } = await talk([finds], [calls], { strategy: "sequential" });
  expect(results.map(({ isError }) => isError)).toEqual([true, true, false]);
});

test("calls of one message run in parallel unless the strategy is sequential", async () => {
  let atWork = 0;
  let most = 0;
  const waits = defineTool({
    name: "waits",
    description,
    input: z.object({}),
    run: async (_args, { wait }) => {
      most = Math.max(most, ++atWork);
      await wait(1);
      atWork -= 1;
      return "done";
    },
  });
  await talk([waits], [[call("waits", {}), call("waits", {})]]);
  expect(most).toBe(2);
});
