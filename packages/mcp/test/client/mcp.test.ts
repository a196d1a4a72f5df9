/** MCP servers as child processes: requests, results, and misbehaving servers. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { getMessageText, memoryStore, toolRegistry } from "@statewright/core";
import { toModelTool } from "@statewright/core/adapter";
import { runProcess } from "@statewright/host";
import { say as says, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { createMcpTools } from "../../src/client/mcp-tools.ts";
import type { McpChange } from "../../src/index.ts";
import { callTool, collectAnswers, startCalls } from "../support/calls.ts";
import { createRecordingPath, endServers, formatVariable, listSent, serve } from "../support/mcp.ts";
import { createLoggedWorld, isAlive } from "../support/processes.ts";

endServers();

test("MCP tool names are converted to snake_case and back, schemas reach the model unchanged, and only arguments are sent", async () => {
  const file = createRecordingPath();
  const { tools, refused } = await serve("usual", { file });
  const read = tools.find(({ spec }) => spec.name === "files_read");
  expect(read?.spec).toMatchObject({ originalName: "Files/Read", label: "Read it", description: "Reads." });
  expect(read === undefined ? undefined : toModelTool(read.spec).inputSchema).toEqual({
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    ...{ if: { properties: { Path: { const: "/deep" } } }, then: { required: ["Depth"] } },
    properties: { Path: { type: "string", pattern: "^/", "x-hint": { kept: [1, null] } } },
    required: ["Path"],
  });
  expect(await callTool(tools, { Path: "/a" }, "files_read")).toBe("read /a");
  expect(await callTool(tools, { Path: "/deep" }, "files_read")).toContain("Depth: is missing");
  const calls = listSent(file).filter(({ method }) => method === "tools/call");
  expect(calls.map(({ params }) => params)).toEqual([
    { name: "Files/Read", arguments: { Path: "/a" }, _meta: { progressToken: expect.any(Number) } },
  ]);
  expect(refused).toEqual([
    { name: "looks", reason: expect.stringContaining("look-around") },
    { name: "as_task", reason: expect.stringContaining("task") },
  ]);
});

test("a malformed tool of an MCP server is left out with a warning and the other tools stay [FX77]", async () => {
  const world = createLoggedWorld();
  const { tools, refused } = await serve("malformed", { world });
  expect(tools.map(({ spec }) => spec.name)).toEqual((await serve()).tools.map(({ spec }) => spec.name));
  expect(refused).toEqual([
    { name: "unfit", reason: expect.stringContaining("inputSchema: ") },
    { name: "tool 3", reason: expect.stringContaining("the definition: ") },
    { name: "tool 4", reason: expect.stringContaining("name: ") },
    { name: "deep", reason: "the definition is nested deeper than 64 levels" },
    { name: "looks", reason: expect.any(String) },
    { name: "as_task", reason: expect.any(String) },
    { name: "", reason: expect.stringContaining("name") },
  ]);
  const warnings = world.lines.filter(({ level, text }) => level === "warn" && text.startsWith("unusable tool"));
  expect(warnings.map(({ fields }) => fields)).toEqual(refused.map(({ name: tool, reason }) => ({ tool, reason })));
  expect(await callTool(tools, { say: "hello" })).toContain("hello");
});

test("options of a malformed MCP tool are accepted, and only the used tools are reported [FX77]", async () => {
  const { tools, refused } = await serve("malformed", { only: ["echo", "unfit"] });
  expect(tools.map(({ spec }) => spec.name)).toEqual(["echo"]);
  expect(refused.map(({ name }) => name)).toEqual(["unfit"]);
});

test("MCP content arrives as texts, images, links and file artifacts, and _meta does not reach the model", async () => {
  const { tools } = await serve();
  const live = startCalls(tools, [{ name: "blocks", args: {} }, { args: { say: "hi" } }], { store: memoryStore() });
  const [blocks, echo] = await live.answers();
  expect(blocks?.content.slice(0, 4)).toEqual([
    { type: "text", text: "first" },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "text", text: "Resource file:///notes/a.txt:\ninside" },
    { type: "text", text: "Resource file:///notes/c.txt: c, text/plain, the third" },
  ]);
  const results = live.events.flatMap((event) => (event.type === "tool.completed" ? [event.result] : []));
  const artifacts = results.flatMap((result) => result.artifacts ?? []);
  expect(artifacts).toMatchObject([
    { name: "audio_1", mimeType: "audio/wav", bytes: 3 },
    { name: "b.bin", mimeType: "application/x-thing", bytes: 3 },
  ]);
  expect(JSON.stringify(echo)).not.toContain("of people");
  expect(results.find(({ name }) => name === "echo")?.details).toEqual({ meta: { hidden: "of people" } });
});

test("structured MCP results are validated, and a tool error is an error that the model reads", async () => {
  const { tools } = await serve();
  const live = startCalls(
    tools,
    ["right", "wrong", "error"].map((as) => ({ name: "weather", args: { as } })),
    { strategy: "sequential" },
  );
  const [right, wrong, error] = await live.answers();
  expect(right).toMatchObject({ isError: false, content: [{ type: "json", value: { celsius: 7 } }] });
  expect(live.events.find((event) => event.type === "tool.completed")).toMatchObject({
    result: { value: { celsius: 7 } },
  });
  expect(wrong).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("celsius: must be number") }],
  });
  expect(error).toMatchObject({ isError: true, content: [{ text: "no weather today" }] });
});

test("MCP progress becomes updates, and an abandoned call is cancelled at the server and its late answer ignored", async () => {
  const file = createRecordingPath();
  const world = createLoggedWorld();
  const { tools } = await serve("usual", { file, world });
  const counting = startCalls(tools, [{ name: "count", args: {} }]);
  expect(getMessageText((await counting.answers())[0] ?? fail())).toBe("counted");
  expect(counting.events.flatMap((event) => (event.type === "tool.update" ? [event.partial] : []))).toEqual([
    { content: "step 1", details: { progress: 1, total: 2 } },
    { content: "step 2", details: { progress: 2, total: 2 } },
  ]);
  const held = startCalls(tools, [{ name: "hold", args: {} }]);
  await new Promise<void>((go) => held.handle.on((event) => event.type === "tool.started" && go()));
  // The call is sent when a later one has been answered.
  await callTool(tools, { say: "ping" });
  held.handle.cancel("because of a secret");
  await held.handle.result;
  expect(await callTool(tools, { say: "mine" })).toMatch(/^mine /);
  const cancelled = listSent(file).filter(({ method }) => method === "notifications/cancelled");
  expect(cancelled).toMatchObject([{ params: { reason: "The call was aborted." } }]);
  expect(world.lines.filter(({ text }) => text.includes("unknown message ID"))).toHaveLength(1);
});

test("MCP progress becomes updates with numbers also when elicitations are asked [FX94]", async () => {
  const { tools } = await serve("usual", { elicitation: "ask", only: ["count"] });
  const counting = startCalls(tools, [{ name: "count", args: {} }]);
  expect(getMessageText((await counting.answers())[0] ?? fail())).toBe("counted");
  const updates = counting.events.flatMap((event) =>
    event.type === "tool.update" ? [{ within: event.within, partial: event.partial }] : [],
  );
  expect(updates).toEqual([
    { within: undefined, partial: { content: "step 1", details: { progress: 1, total: 2 } } },
    { within: undefined, partial: { content: "step 2", details: { progress: 2, total: 2 } } },
  ]);
  expect(counting.events.some(({ type }) => type === "node.progress")).toBe(false);
});

test("after an MCP server dies in a call a repeatable call is retried in a new process, and a once call is in doubt [F17]", async () => {
  const stderr: string[] = [];
  const one = createRecordingPath();
  const once = await serve("usual", { file: one, onStderr: (line) => stderr.push(line) });
  const before = once.pid;
  const [lost] = await collectAnswers(once.tools, [{ name: "die", args: {} }]);
  expect(lost).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/exited with code 3.*The outcome of the call is unknown\.$/s) }],
  });
  expect(stderr).toEqual(["about to die"]);
  expect(listSent(one).filter(({ method }) => method === "tools/call")).toHaveLength(1);
  expect(isAlive(before)).toBe(false);

  const options = { tools: { die: { effect: "idempotent", retry: { attempts: 2, initialMs: 1 } } } } as const;
  const two = createRecordingPath();
  const again = await serve("usual", { file: two, ...options, onChange: () => true });
  expect(await callTool(again.tools, {}, "die")).toBe("lives again");
});

describe("misbehaving servers", () => {
  test("noise, invalid answers and invalid results of an MCP server are each an error of their call alone", async () => {
    const { tools } = await serve("noise");
    const shape = await callTool(tools, { how: "shape" }, "broken");
    expect(shape).toContain("returned an invalid result");
    expect(await callTool(tools, { how: "message" }, "broken")).toContain("returned an invalid response");
    expect(await callTool(tools, { how: "error" }, "broken")).toBe(
      'MCP server "hand" rejected the arguments: a must be b',
    );
    expect(await callTool(tools, { say: "still here" })).toMatch(/^still here /);
  });

  test("an MCP server that sends an endless line, endless lists or no greeting is ended, and no process remains [R15]", async () => {
    const long = await serve("usual", { maxMessageLength: 20_000 });
    const { pid } = long;
    expect(await callTool(long.tools, { how: "long" }, "broken")).toContain("longer than 20000 characters");
    await long.close();
    expect(isAlive(pid)).toBe(false);
    await expect(serve("endless")).rejects.toMatchObject({
      code: "mcp_failed",
      message: expect.stringContaining("exceeds 64 pages"),
    });
    await expect(serve("silent", { startTimeoutMs: 150 })).rejects.toMatchObject({
      code: "mcp_failed",
      message: expect.stringContaining("the handshake timed out after 150 ms"),
    });
  });

  test("a call to an MCP server that never answers ends by its timeout", async () => {
    const { tools } = await serve("usual", { tools: { hold: { timeoutMs: 50, graceMs: 1_000 } } });
    const live = startCalls(tools, [{ name: "hold", args: {} }]);
    expect(getMessageText((await live.answers())[0] ?? fail())).toBe("Timed out after 50 ms");
  });

  test("colliding MCP tool names are refused, and an unknown name lists the existing ones [T52]", async () => {
    await expect(serve("collide")).rejects.toMatchObject({
      code: "invalid_tool",
      message: expect.stringMatching(/"echo": "echo" and "Echo"/),
    });
    await expect(serve("usual", { only: ["ehco"] })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringMatching(/expected names of its tools, got "ehco".*"echo"/),
    });
    const prefixed = await serve("collide", { only: ["Echo"], prefix: true });
    expect(prefixed.tools.map(({ spec }) => [spec.name, spec.originalName])).toEqual([["hand_echo", "Echo"]]);
  });
});

test("MCP tool definitions are pinned: a tool changed by a restart is not called, and pins are compared at the next start [R13]", async () => {
  const changes: McpChange[] = [];
  const file = createRecordingPath();
  const server = await serve("usual", { file, onChange: (change) => changes.push(change) > 9 });
  const { pins } = server;
  await callTool(server.tools, {}, "die");
  const [changed, same] = await collectAnswers(
    server.tools,
    [{ args: { say: "a" } }, { name: "Files/Read", args: {} }].map((asked, index) =>
      index === 0 ? asked : { name: "count", args: {} },
    ),
  );
  expect(changed).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('"echo"') }] });
  expect(same).toMatchObject({ isError: false });
  expect(changes).toEqual([{ added: [], removed: [], changed: ["echo"] }]);
  expect(server.pendingChange).toEqual(changes[0]);
  server.accept();
  expect(server.tools.find(({ spec }) => spec.name === "echo")?.spec.description).toBe("Says something else.");
  expect(await callTool(server.tools, { say: "a" })).toMatch(/^a /);

  await expect(serve("extra", { pins })).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining("changed: blocks"),
    details: { added: [], removed: [], changed: ["blocks"] },
  });
  expect((await serve("extra", { pins, onChange: () => true })).tools).not.toHaveLength(0);
});

test("approving MCP definitions does not approve definitions that replace them during the decision", async () => {
  let resolveTurned = (): void => undefined;
  const hasTurned = new Promise<void>((resolve) => {
    resolveTurned = resolve;
  });
  const asked: McpChange[] = [];
  let sayMore = (): void => undefined;
  const isAskedAgain = new Promise<void>((resolve) => {
    sayMore = resolve;
  });
  const { tools } = await serve("turncoat", {
    pins: {},
    only: ["blocks"],
    onStderr: resolveTurned,
    onChange: async (change) => {
      asked.push(change);
      if (asked.length > 1) {
        sayMore();
        return false;
      }
      await hasTurned;
      return true;
    },
  });
  await isAskedAgain;
  expect(tools.map(({ spec }) => spec.description)).toEqual(["blocks"]);
  expect(asked).toEqual([
    { added: ["blocks"], removed: [], changed: [] },
    { added: [], removed: [], changed: ["blocks"] },
  ]);
  expect(await callTool(tools, {}, "blocks")).toContain("changed since its acceptance");
});

test("MCP tools changed at run time enter the registry after approval and leave it", async () => {
  const registry = toolRegistry();
  let decide: (isTaken: boolean) => void = () => undefined;
  let tell: (change: McpChange) => void = () => undefined;
  const asked = new Promise<McpChange>((resolve) => {
    tell = resolve;
  });
  const server = await serve("usual", {
    onChange: (change) => {
      tell(change);
      return new Promise((resolve) => {
        decide = resolve;
      });
    },
  });
  const leave = server.syncRegistry(registry);
  expect(registry.names()).toContain("count");
  const shown = registry.tools();
  await callTool([...registry.tools().values()], {}, "swap");
  expect(await asked).toEqual({ added: ["fresh"], removed: ["count"], changed: [] });
  expect(registry.names()).not.toContain("fresh");
  decide(true);
  await callTool([...shown.values()], { say: "once more" });
  expect(registry.names()).toContain("fresh");
  expect(registry.names()).not.toContain("count");
  // A call advertised earlier uses the definition of that time.
  expect(await callTool([...shown.values()], {}, "count")).toContain("changed since its acceptance");
  expect(await callTool([...registry.tools().values()], {}, "fresh")).toBe("fresh");
  leave();
  expect(registry.names()).toEqual([]);
});

test.each([
  ["no hints are given", {}, {}, "destructive", "once", true],
  [
    "a hint that lowers the risk is ignored",
    { readOnlyHint: true, openWorldHint: false },
    {},
    "destructive",
    "once",
    true,
  ],
  [
    "unless hints are trusted",
    { readOnlyHint: true, openWorldHint: false },
    { trustHints: true },
    "read",
    "idempotent",
    false,
  ],
  ["trusted hints that are absent are conservative", {}, { trustHints: true }, "destructive", "once", true],
  [
    "a write without further hints",
    { destructiveHint: false, idempotentHint: true },
    { trustHints: true },
    "write",
    "idempotent",
    true,
  ],
  [
    "the user's word counts",
    {},
    { common: { safety: { access: "read", network: false }, effect: "pure" } },
    "read",
    "pure",
    false,
  ],
  [
    "a hint that raises the risk overrides the safety of the server",
    { destructiveHint: true, idempotentHint: false },
    { common: { safety: { access: "read" }, effect: "pure" } },
    "destructive",
    "once",
    true,
  ],
  [
    "a hint that raises the risk does not override the safety of the tool",
    { destructiveHint: true, idempotentHint: false },
    { byName: { tool: { safety: { access: "write" }, effect: "idempotent" } } },
    "write",
    "idempotent",
    true,
  ],
] as const)("MCP hints decide the safety of a tool: %s", (_what, annotations, said, access, effect, network) => {
  const making = { server: "s", prefix: "", only: undefined, trustHints: false, common: {}, byName: {}, ...said };
  const definition = { name: "tool", inputSchema: { type: "object" as const }, annotations };
  const { tools } = createMcpTools([definition], making);
  expect(tools[0]?.parts).toMatchObject({ effect, safety: { access, network } });
});

test("MCP resources and prompts are read: paged lists, templates, text and bytes, prompt messages", async () => {
  const { resources, prompts } = await serve();
  expect(await resources.list()).toEqual([
    { uri: "file:///a", name: "a" },
    { uri: "file:///a", name: "a2" },
  ]);
  expect(await resources.listTemplates()).toEqual([{ uriTemplate: "file:///{name}", name: "any" }]);
  expect(await resources.read("file:///a")).toEqual([
    { uri: "file:///a", text: "A" },
    { uri: "file:///a#b", bytes: Buffer.from([1, 2, 3]) },
  ]);
  await expect(resources.read("file:///z")).rejects.toMatchObject({
    code: "mcp_failed",
    message: expect.stringContaining("there is none"),
  });
  expect(await prompts.list()).toEqual([{ name: "greet", arguments: [{ name: "who", required: true }] }]);
  const { messages } = await prompts.get("greet", { who: "Ann" });
  expect(messages).toMatchObject([
    { role: "user", content: [{ type: "text", text: "Greet Ann." }] },
    { role: "assistant", content: [{ type: "text", text: "Whom?" }] },
  ]);
});

test("an MCP server inherits the usual environment variables and given ones, and no others [R11]", async () => {
  process.env["SECRET"] = "of ours";
  try {
    const closed = await serve();
    expect(await callTool(closed.tools, {})).toMatch(/^nothing /);
    const named = await serve("usual", { env: { SECRET: formatVariable("SECRET") } });
    expect(await callTool(named.tools, {})).toMatch(/^of ours /);
  } finally {
    delete process.env["SECRET"];
  }
});

test("MCP sampling is refused without a model, and with one stays within limits and counts as usage of the call", async () => {
  const refused = await serve();
  expect(await callTool(refused.tools, {}, "think")).toContain("Method not found");
  const model = scriptedModel([says("A thought.", { usage: { inputTokens: 3, outputTokens: 2 } })]);
  const { tools } = await serve("usual", { sampling: { model, maxOutputTokens: 10 }, roots: ["/srv/notes"] });
  const live = startCalls(tools, [{ name: "think", args: {} }]);
  expect(getMessageText((await live.answers())[0] ?? fail())).toBe('{"type":"text","text":"A thought."}');
  expect(model.requests[0]).toMatchObject({ maxOutputTokens: 10, tools: [] });
  expect(live.events.find((event) => event.type === "tool.completed")).toMatchObject({
    result: { usage: { inputTokens: 3, outputTokens: 2 } },
  });
  expect(await callTool(tools, {}, "where")).toBe('[{"uri":"file:///srv/notes","name":"notes"}]');
});

test("an idle MCP server lets our process exit and exits with it", async () => {
  const program = `
    import { connectMcp } from ${JSON.stringify(join(import.meta.dirname, "../../src/index.ts"))};
    const server = await connectMcp({ name: "hand", command: process.execPath, args: [${JSON.stringify(join(import.meta.dirname, "../fixtures/mcp.mjs"))}] });
    console.log(server.pid);`;
  const { stdout, exitCode } = await runProcess(process.execPath, ["--input-type=module", "-e", program], {
    cwd: join(import.meta.dirname, "../.."),
    timeoutMs: 20_000,
  });
  expect(exitCode).toBe(0);
  await expect.poll(() => canRun(stdout.trim())).toBe(false);
});

/** Returns whether a process can run code: a zombie cannot. */
function canRun(pid: string): boolean {
  const state = spawnSync("ps", ["-o", "stat=", "-p", pid], { encoding: "utf8" }).stdout.trim();
  return state !== "" && !state.startsWith("Z");
}

function fail(): never {
  throw new Error("there is none");
}
