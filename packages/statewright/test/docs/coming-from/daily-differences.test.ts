/** Differences that the pages for users of other agent libraries name, as facts and on each page. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPlugin } from "@statewright/plugins";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, memoryStore, streamEvents, type ToolResult } from "statewright";
import { toModelTool } from "statewright/adapter";
import { expect, test } from "vitest";
import * as z from "zod";

const docs = new URL("../../../../../docs/", import.meta.url);
const pages = [
  "coming-from-pi",
  ...["yoagent", "phi-core", "bitop", "tinyagents"].map((name) => `reference/coming-from-${name}`),
];

test.each(pages)(
  "the page %s names what differs for a second prompt, enumerations, events and time limits [FX91]",
  (page) => {
    const text = readFileSync(new URL(`${page}.md`, docs), "utf8");
    const differences = text.slice(text.indexOf("## Differences, with reasons"));
    for (const words of [
      "a second prompt",
      "`store`",
      "`thread`",
      ".default(",
      ".catch(",
      "events of tools",
      "toolTimeoutMs",
    ])
      expect(differences).toContain(words);
    if (/pi|bitop/.test(page)) expect(differences).toContain('loadPlugin("./x.py")');
  },
);

test("a second prompt continues the conversation only with a store and the same thread [FX91]", async () => {
  const store = memoryStore();
  const model = scriptedModel(({ messages }) => say(`${messages.length} messages`));
  const agent = createAgent({ name: "chat", model });
  const ask = async (options: object) => (await agent.run({ input: "Hi", ...options }).result).text;
  expect([await ask({}), await ask({})]).toEqual(["1 messages", "1 messages"]);
  expect([await ask({ store, thread: "t" }), await ask({ store, thread: "t" })]).toEqual(["1 messages", "3 messages"]);
  expect(await ask({ store, thread: "u" })).toBe("1 messages");
});

const base = { name: "set", description: "Sets." };

test("an optional enumeration has a default, and catch replaces wrong values; tool events are not stored [FX91]", async () => {
  const levels = z.enum(["low", "high"]);
  const seen: unknown[] = [];
  const input = z.object({ plain: levels.default("low"), lenient: levels.default("low").catch("low") });
  const set = defineTool({
    ...base,
    input,
    run: (args, { progress }) => {
      progress("setting");
      seen.push(args);
      return { content: "set", details: { at: 1 } };
    },
  });
  const turns = [call("set", {}), call("set", { lenient: "no" }), call("set", { plain: "no" })];
  const store = memoryStore();
  const agent = createAgent({ name: "chat", model: scriptedModel([turns, say("ok")]), tools: [set], store });
  const results: ToolResult[] = [];
  const run = agent.run({ input: "Hi", thread: "t" });
  run.on((event) => {
    if (event.type === "tool.completed" || event.type === "tool.failed") results.push(event.result);
  });
  await run.result;
  expect(seen).toEqual([
    { plain: "low", lenient: "low" },
    { plain: "low", lenient: "low" },
  ]);
  expect(results.map(({ error }) => error?.kind).sort()).toEqual(["invalid_args", undefined, undefined]);
  const only = defineTool({
    ...base,
    input: z.object({ a: levels.default("low").catch("low"), b: levels.catch("low") }),
  });
  expect(toModelTool(only.spec).inputSchema["required"]).toEqual(["b"]);
  const stored: string[] = [];
  for await (const { type } of streamEvents({ store, thread: "t" })) stored.push(type);
  expect(stored.length).toBeGreaterThan(2);
  expect(stored.filter((type) => type.startsWith("tool."))).toEqual([]);
});

test("loadPlugin starts an executable file by its name [FX91]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "statewright-file-plugin-"));
  const file = join(folder, "x.mjs");
  const lines = [
    `#!${process.execPath}`,
    'process.stdin.on("data", () => process.stdout.write(JSON.stringify({',
    '  name: "x", description: "A file.", parameters: { type: "object", properties: {} } }) + "\\n"));',
  ];
  writeFileSync(file, lines.join("\n"));
  chmodSync(file, 0o755);
  try {
    for (const options of [file, { command: "./x.mjs", cwd: folder }]) {
      const plugin = await loadPlugin(options);
      expect(plugin.tools.map(({ name }) => name)).toEqual(["x"]);
      await plugin.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
