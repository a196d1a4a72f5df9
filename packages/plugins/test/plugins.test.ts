import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTool, getMessageText, type Json, toolRegistry, type World } from "@statewright/core";
import { jsonSchemaInput, toModelTool } from "@statewright/core/adapter";
import { runProcess } from "@statewright/host";
import { virtualClock } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";
import { loadPlugin } from "../src/index.ts";
import { callTool, collectAnswers, startCalls } from "./support/calls.ts";
import { createLoggedWorld, isAlive, load } from "./support/plugins.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-plugins-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("protocol 1 is exact byte for byte: one describe line, then one line per call [S3.25, S3.28, S3.29]", async () => {
  const log = join(folder, "lines");
  const { tools } = await load("record", { extra: log });
  await collectAnswers(tools, [
    { id: "c1", args: { say: "one" } },
    { id: "c2", args: { say: "two" } },
  ]);
  expect(readFileSync(log, "utf8")).toBe(
    [
      '{"type":"describe"}',
      '{"type":"call","call_id":"c1","params":{"say":"one"}}',
      '{"type":"call","call_id":"c2","params":{"say":"two"}}',
      "",
    ].join("\n"),
  );
  expect(tools[0]?.spec).toMatchObject({ name: "echo", description: "Says what it is told.", effect: "once" });
});

test("a cancelled call sends no unknown line to a protocol 1 plugin, and the next call gets its own answer [T41]", async () => {
  const log = join(folder, "cancelled");
  const plugin = await load("record", { extra: log });
  const held = startCalls(plugin.tools, [{ id: "c1", args: { say: "late", hold: true } }]);
  await isSent(held);
  held.handle.cancel("enough");
  await held.handle.result;
  const next = startCalls(plugin.tools, [{ id: "c2", args: { say: "mine" } }]);
  await isSent(next);
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(getMessageText((await next.answers())[0] ?? fail())).toBe("mine");
  await plugin.close();
  expect(readFileSync(log, "utf8")).toBe(
    [
      '{"type":"describe"}',
      '{"type":"call","call_id":"c1","params":{"say":"late","hold":true}}',
      '{"type":"call","call_id":"c2","params":{"say":"mine"}}',
      "",
    ].join("\n"),
  );
});

test("tools of a plugin have their name, as tools of defineTool have [FX90]", async () => {
  const { tools } = await load();
  expect(tools.map(({ name }) => name)).toEqual(tools.map(({ spec }) => spec.name));
  expect(tools[0]?.name).toBe("echo");
});

test("a plugin starts once at load and keeps its process over calls and runs [S3.26, S3.27]", async () => {
  const plugin = await load();
  expect(isAlive(plugin.pid)).toBe(true);
  const details = async () => {
    const live = startCalls(plugin.tools, [{ args: { say: "a" } }]);
    await live.answers();
    return live.events.flatMap((event) => (event.type === "tool.completed" ? [event.result.details] : []));
  };
  const seen = [...(await details()), ...(await details()), ...(await details())];
  expect(seen).toEqual(Array.from({ length: 3 }, () => ({ pid: plugin.pid })));
});

test("a compiled tool and a plugin tool share a registry and look alike to a model [S3.1]", async () => {
  const { tools } = await load();
  const [echo] = tools;
  if (echo === undefined) return fail();
  const here = defineTool({
    name: "echo_here",
    description: echo.spec.description,
    input: jsonSchemaInput<{ readonly say: string }>(toModelTool(echo.spec).inputSchema),
    run: ({ say: said }) => said,
  });
  const registry = toolRegistry<unknown, unknown>([here, ...tools]);
  expect(registry.names()).toEqual(["echo", "echo_here"]);
  const [theirs, ours] = registry.forModel();
  expect({ ...theirs, name: "" }).toEqual({ ...ours, name: "" });
  const said = await collectAnswers(
    [...registry.tools().values()],
    [
      { name: "echo", args: { say: "hello" } },
      { name: "echo_here", args: { say: "hello" } },
      { name: "echo", args: {} },
      { name: "echo_here", args: {} },
    ],
  );
  const shown = said.map(({ id: _, callId: __, ...message }) => JSON.stringify(message).replace("echo_here", "echo"));
  expect(shown[0]).toBe(shown[1]);
  expect(shown[0]).toContain("hello");
  expect(said.slice(2).map(({ isError, content }) => [isError, content.length])).toEqual([
    [true, 1],
    [true, 1],
  ]);
});

test("a plugin reply is a result, an error reply is an error with its text, and a text without the flag is no error [S3.30, S3.31, S3.32, S3.49]", async () => {
  const { tools } = await load();
  const [good, bad, plain] = await collectAnswers(
    tools,
    [
      { args: { say: "good" } },
      { args: { say: "I gave up after 3 s", error: true } },
      { args: { say: "", blocks: [{ type: "text", text: "plain" }] } },
    ],
    { strategy: "sequential" },
  );
  expect(good).toMatchObject({ isError: false, content: [{ type: "text", text: "good" }] });
  expect(bad).toMatchObject({ isError: true, content: [{ type: "text", text: "I gave up after 3 s" }] });
  expect(plain).toMatchObject({ isError: false, content: [{ type: "text", text: "plain" }] });
});

test("text blocks of a plugin are joined in order without separator, and an image between them keeps its place [S3.36, S3.38]", async () => {
  const { tools } = await load();
  const [joined, mixed] = await collectAnswers(tools, [
    {
      args: {
        say: "",
        blocks: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    },
    {
      args: {
        say: "",
        blocks: [
          { type: "text", text: "a" },
          { type: "image", data: "AA==", mimeType: "image/png" },
          { type: "text", text: "b" },
          { type: "image", data: "AQ==", mime_type: "image/gif" },
        ],
      },
    },
  ]);
  expect(joined?.content).toEqual([{ type: "text", text: "ab" }]);
  expect(mixed?.content).toEqual([
    { type: "text", text: "a" },
    { type: "image", data: "AA==", mimeType: "image/png" },
    { type: "text", text: "b" },
    { type: "image", data: "AQ==", mimeType: "image/gif" },
  ]);
});

test("plugin content that is neither text nor image reaches the model unchanged", async () => {
  const { tools } = await load();
  const say = (blocks: readonly Json[]) => ({ args: { say: "", blocks } });
  const [video, broken, mixed] = await collectAnswers(tools, [
    say([{ type: "video", url: "x" }]),
    say([{ type: "image", data: "AA==" }, 7, null]),
    say(["bare ", { type: "text", text: "text" }]),
  ]);
  expect(video).toMatchObject({ isError: false, content: [{ type: "text", text: '{"type":"video","url":"x"}' }] });
  expect(broken?.content).toEqual([{ type: "text", text: '{"type":"image","data":"AA=="}7null' }]);
  expect(mixed?.content).toEqual([{ type: "text", text: "bare text" }]);
});

test("a plugin that exits in a call fails that call, the next call gets a new process, and other plugins keep theirs [S3.33, S3.56, F17]", async () => {
  const plugin = await load();
  const other = await load();
  const [before, otherBefore] = [plugin.pid, other.pid];
  const [crashed] = await collectAnswers(plugin.tools, [{ args: { say: "", exit: 7 } }]);
  expect(crashed).toMatchObject({ isError: true });
  expect(getMessageText(crashed ?? fail())).toContain("exited with code 7");
  expect(await callTool(plugin.tools, { say: "again" })).toBe("again");
  expect(plugin.pid).not.toBe(before);
  expect(other.pid).toBe(otherBefore);
  expect(await callTool(other.tools, { say: "still here" })).toBe("still here");
});

test("a waiting call is not failed by the exit of a plugin in the call before, since it was never sent", async () => {
  const { tools } = await load();
  const [crashed, next] = await collectAnswers(tools, [{ args: { say: "", exit: 7 } }, { args: { say: "mine" } }]);
  expect(crashed?.isError).toBe(true);
  expect(getMessageText(next ?? fail())).toBe("mine");
});

test("an incomplete JSON line of a plugin fails the call at once, and the next call gets its own answer [S3.34, T45]", async () => {
  const { tools } = await load();
  const pretty = `${JSON.stringify({ content: [{ type: "text", text: "pretty" }] }, null, 2)}\n`;
  const [broken, next] = await collectAnswers(tools, [{ args: { say: "", raw: pretty } }, { args: { say: "mine" } }], {
    strategy: "sequential",
  });
  expect(broken?.isError).toBe(true);
  expect(getMessageText(broken ?? fail())).toMatch(/"echo".*one JSON object per line: incomplete JSON object/);
  expect(getMessageText(next ?? fail())).toBe("mine");
});

test("plugin stderr and non-answer lines go to the log, never to the model [S3.35]", async () => {
  const world = createLoggedWorld();
  const lines: string[] = [];
  const plugin = await load("echo", { world, onStderr: (line) => lines.push(line) });
  const [answer] = await collectAnswers(plugin.tools, [{ args: { say: "answer", noise: true, stderr: "a warning" } }]);
  expect(getMessageText(answer ?? fail())).toBe("answer");
  await plugin.close();
  expect(lines).toEqual(["a warning"]);
  const logged = world.lines.filter(({ text }) => text.includes("is not a reply")).map(({ fields }) => fields);
  expect(logged).toEqual([{ line: "thinking ..." }, { line: '{"level":"info","msg":"half way"}' }, { line: "null" }]);
});

test("plugin stderr without a listener goes to the log with the plugin name [S3.35]", async () => {
  const world = createLoggedWorld();
  const plugin = await load("echo", { world });
  await collectAnswers(plugin.tools, [{ args: { say: "x", stderr: "a warning" } }]);
  await plugin.close();
  expect(world.lines.filter(({ level }) => level === "info").map(({ text }) => text)).toEqual([
    `${process.execPath}: a warning`,
  ]);
});

test("plugin answers cut inside a character, or with characters that resemble line ends, arrive complete [T45]", async () => {
  const { tools } = await load();
  const strange = "é 🙂 \u2028 \u2029 \r \u0085 end";
  expect(await callTool(tools, { say: strange, pieces: true })).toBe(strange);
  expect(await callTool(tools, { say: "", raw: `{"content":[{"type":"text","text":"a\u2028b"}]}\n` })).toBe("a\u2028b");
});

test("an endless line of a plugin is cut at the limit, and the next call is answered [T44]", async () => {
  const { tools } = await load("echo", { maxLineLength: 1_000 });
  const [long] = await collectAnswers(tools, [{ args: { say: "x".repeat(2_000) } }]);
  expect(getMessageText(long ?? fail())).toContain("longer than 1000 characters");
  expect(await callTool(tools, { say: "short" })).toBe("short");
});

test("a flood of plugin output without a line end ends the plugin at the limit and is not buffered further", async () => {
  const { tools } = await load("echo");
  const bytes = process.env["STATEWRIGHT_WHOLE"] === "1" ? 2 ** 30 : 2 ** 26;
  const before = process.memoryUsage.rss();
  const [flooded] = await collectAnswers(tools, [{ args: { say: "", flood: bytes } }]);
  expect(getMessageText(flooded ?? fail())).toContain("longer than 16777216 characters");
  expect(process.memoryUsage.rss() - before).toBeLessThan(2 ** 28);
  expect(await callTool(tools, { say: "short" })).toBe("short");
});

test("a plugin that fails to load reports its path and the cause, and no process remains [S3.40]", async () => {
  const world = virtualClock({ waitsForWork: false });
  await expect(loadPlugin("no-such-program")).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining(
      "no-such-program (spawn ENOENT): command not found. Install the command, correct its name, or pass its full path. See",
    ),
  });
  await expect(load("exit-at-start")).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("it exited with code 3"),
  });
  await expect(load("bad-describe")).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("has no description"),
  });
  await expect(loadPlugin({ command: process.execPath, args: ["-e", "console.log('hello')"] })).rejects.toThrow(
    'exited with code 0; it wrote "hello", which is not a description',
  );
  const silent = load("never-describes", { startTimeoutMs: 3_000, world });
  const observed = expect(silent).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("within 3000 ms"),
  });
  while (world.timers === 0) await new Promise((resolve) => setImmediate(resolve));
  await world.advance(3_000);
  await world.advance(10_000);
  await observed;
});

test("loadPlugin refuses unknown and invalid options before it starts a process", async () => {
  const command = "no-such-program";
  const cases = [
    [{ command, arg: ["stats.py"] }, 'loadPlugin has no option "arg"'],
    [{ command, onTimeout: "die" }, 'plugin "no-such-program": `onTimeout` must be "wait" or "kill", got "die"'],
    [{ command, restart: "always" }, 'plugin "no-such-program": `restart` must be "lazy" or "never", got "always"'],
  ] as const;
  for (const [options, message] of cases)
    await expect(loadPlugin(options as never)).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining(message),
    });
});

test("plugin output before its description is ignored", async () => {
  expect(await callTool((await load("noise-before")).tools, { say: "hello" })).toBe("hello");
});

test("a plugin that describes a list has several tools and receives the name of the called one [S3.43, D14]", async () => {
  const { tools } = await load("list");
  expect(tools.map(({ spec }) => spec.name)).toEqual(["echo", "shout"]);
  expect(await callTool(tools, { say: "loud" }, "shout")).toBe("LOUD");
  expect(await callTool(tools, { say: "quiet" }, "echo")).toBe("quiet");
});

test("a foreign plugin tool name becomes snake_case and keeps its original towards the plugin [D32]", async () => {
  const { tools } = await load("echo", { extra: "name=Files/Read" });
  expect(tools[0]?.spec).toMatchObject({ name: "files_read", originalName: "Files/Read" });
});

test("a call of a plugin tool under its alias reaches the plugin under the original name [FX80, D32]", async () => {
  const { tools } = await load("list", { extra: "name=Files/Read" });
  expect(tools.map(({ spec }) => spec.name)).toEqual(["files_read", "shout"]);
  expect(await callTool(tools, { say: "hello", named: true }, "files_read")).toBe("Files/Read");
});

test("plugin arguments and variables are expanded from the environment without a shell [S3.44, S3.45, R11, T47]", async () => {
  process.env["STATEWRIGHT_TEST_NAME"] = "a b; $(touch x) `y`";
  try {
    const { tools } = await load("echo", { extra: `name=${reference("STATEWRIGHT_TEST_NAME")}` });
    expect(tools[0]?.spec.originalName).toBe("a b; $(touch x) `y`");
    await expect(load("echo", { args: [reference("STATEWRIGHT_TEST_UNSET")] })).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining("STATEWRIGHT_TEST_UNSET"),
    });
  } finally {
    delete process.env["STATEWRIGHT_TEST_NAME"];
  }
});

test("a plugin inherits the environment, or a reduced one by option [D25]", async () => {
  process.env["STATEWRIGHT_TEST_SECRET"] = "s";
  const script =
    'process.stdin.on("data",()=>console.log(JSON.stringify({name:"env",description:String(process.env.STATEWRIGHT_TEST_SECRET),parameters:{type:"object"}})))';
  try {
    const readPluginEnv = async (inheritEnv?: boolean | readonly string[]) => {
      const plugin = await loadPlugin({
        command: process.execPath,
        args: ["-e", script],
        ...(inheritEnv === undefined ? {} : { inheritEnv }),
      });
      await plugin.close();
      return plugin.tools[0]?.spec.description;
    };
    expect(await readPluginEnv()).toBe("s");
    expect(await readPluginEnv(false)).toBe("undefined");
    expect(await readPluginEnv(["STATEWRIGHT_TEST_SECRET"])).toBe("s");
  } finally {
    delete process.env["STATEWRIGHT_TEST_SECRET"];
  }
});

test("a protocol 1 plugin emits no updates, whatever it prints [S3.54, D22]", async () => {
  const { tools } = await load();
  const live = startCalls(tools, [{ args: { say: "done", updates: true } }]);
  expect(getMessageText((await live.answers())[0] ?? fail())).toBe("done");
  expect(live.events.some(({ type }) => type === "tool.update" || type === "tool.progress")).toBe(false);
});

test("a protocol 2 plugin reports progress, answers out of order, and receives cancels and the end", async () => {
  const lines: string[] = [];
  const plugin = await load("two", { onStderr: (line) => lines.push(line) });
  const live = startCalls(plugin.tools, [
    { id: "slow", args: { say: "slow", hold: true } },
    { id: "fast", args: { say: "fast" } },
  ]);
  await new Promise<void>((resolve) => {
    live.handle.on((event) => {
      if (event.type === "tool.completed" && event.callId === "fast") resolve();
    });
  });
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect((await live.answers()).map(getMessageText)).toEqual(["slow", "fast"]);
  const observed = live.events.flatMap((event): readonly unknown[] =>
    event.type === "tool.progress" ? [event.text] : event.type === "tool.update" ? [event.partial] : [],
  );
  expect(observed).toEqual([
    "begun fast",
    { content: [{ type: "text", text: "half of fast" }], details: { half: true } },
  ]);
  const held = startCalls(plugin.tools, [{ id: "held", args: { say: "never", hold: true } }]);
  await new Promise<void>((resolve) => {
    held.handle.on((event) => {
      if (event.type === "tool.started") setImmediate(resolve);
    });
  });
  held.handle.cancel("enough");
  await held.handle.result;
  await callTool(plugin.tools, { say: "x" });
  await plugin.close();
  expect(lines).toEqual(["cancelled held", "shutting down"]);
});

test("two threads may use one call id of a plugin at the same time", async () => {
  const plugin = await load("two");
  const first = startCalls(plugin.tools, [{ id: "same", args: { say: "first", hold: true } }]);
  const second = startCalls(plugin.tools, [{ id: "same", args: { say: "second" } }]);
  expect(getMessageText((await second.answers())[0] ?? fail())).toBe("second");
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(getMessageText((await first.answers())[0] ?? fail())).toBe("first");
});

test("a repeated call is not answered by the late answer to its abandoned first attempt", async () => {
  const world = createLoggedWorld();
  const plugin = await load("two", { world });
  const first = startCalls(plugin.tools, [{ id: "c1", args: { say: "first", hold: true } }]);
  await isSent(first);
  first.handle.cancel("enough");
  await first.handle.result;
  const second = startCalls(plugin.tools, [{ id: "c1", args: { say: "second", hold: true } }]);
  await isSent(second);
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(getMessageText((await second.answers())[0] ?? fail())).toBe("second");
  expect(world.lines.map(({ text }) => text)).toContainEqual(expect.stringContaining("dropped a late reply"));
});

test("an unanswered plugin call times out and is logged once, the process stays, and the next call gets its own answer [S3.46, S3.47, S3.48, T40, D13]", async () => {
  const world = virtualClock({ waitsForWork: false });
  const lines: { readonly text: string; readonly fields: unknown }[] = [];
  const plugin = await load("echo", {
    timeoutMs: 500,
    world: { ...world, log: (level, text, fields) => void (level === "warn" && lines.push({ text, fields })) },
  });
  const { pid } = plugin;
  const late = startCalls(plugin.tools, [{ id: "late", args: { say: "too late", hold: true } }], { world });
  await isSent(late);
  await world.advance(499);
  expect(late.events.some(({ type }) => type === "tool.failed")).toBe(false);
  await world.advance(1);
  const [timedOut] = await late.answers();
  expect(getMessageText(timedOut ?? fail())).toBe("Timed out after 500 ms");
  expect(lines).toEqual([{ text: expect.stringContaining("timed out"), fields: { tool: "echo", callId: "late" } }]);
  expect(isAlive(pid)).toBe(true);
  const next = startCalls(plugin.tools, [{ id: "next", args: { say: "mine" } }], { world });
  await isSent(next);
  process.kill(pid ?? 0, "SIGUSR2");
  expect(getMessageText((await next.answers())[0] ?? fail())).toBe("mine");
  expect(plugin.pid).toBe(pid);
});

test("a plugin whose late answer does not arrive restarts once the next call has waited long enough [D13]", async () => {
  const clock = virtualClock({ waitsForWork: false });
  let isAnew = false;
  const world: World = {
    ...clock,
    log: (_level, text) => {
      if (text.includes("owes a late reply and is restarted")) isAnew = true;
    },
  };
  const plugin = await load("echo", { timeoutMs: 500, world, staleGraceMs: 400 });
  const { pid } = plugin;
  const silent = startCalls(plugin.tools, [{ args: { say: "never", silent: true } }], { world });
  await isSent(silent);
  await clock.advance(500);
  await silent.answers();
  const next = startCalls(plugin.tools, [{ args: { say: "mine" } }], { world });
  await isSent(next);
  await clock.advance(399);
  expect(isAnew).toBe(false);
  await clock.advance(1);
  expect(isAnew).toBe(true);
  expect(getMessageText((await next.answers())[0] ?? fail())).toBe("mine");
  expect(plugin.pid).not.toBe(pid);
  expect(isAlive(pid)).toBe(false);
});

test.each([
  [300, 5_000],
  [1_000, 5_000],
  [5_000, 5_000],
])(
  "a hung plugin restarts although each call ends before the grace time: timeoutMs %i, staleGraceMs %i [FX85]",
  async (timeoutMs, staleGraceMs) => {
    const world = virtualClock({ waitsForWork: false });
    const plugin = await load("echo", { timeoutMs, world, staleGraceMs });
    const { pid } = plugin;
    const silent = startCalls(plugin.tools, [{ args: { say: "never", silent: true } }], { world });
    await isSent(silent);
    await world.advance(timeoutMs);
    await silent.answers();
    let timedOutCalls = 0;
    while (timedOutCalls * timeoutMs < staleGraceMs) {
      const waiting = startCalls(plugin.tools, [{ args: { say: "mine" } }], { world });
      await isSent(waiting);
      await world.advance(timeoutMs);
      const answer = getMessageText((await waiting.answers())[0] ?? fail());
      timedOutCalls += 1;
      if (answer === "mine") break;
      expect(answer).toBe(`Timed out after ${timeoutMs} ms`);
    }
    expect(await callTool(plugin.tools, { say: "mine" })).toBe("mine");
    expect(timedOutCalls * timeoutMs).toBeLessThan(staleGraceMs + timeoutMs);
    expect(plugin.pid).not.toBe(pid);
    expect(isAlive(pid)).toBe(false);
  },
);

test("a plugin that restarts with other tools is refused until a manual restart accepts the new tools [S3.50, R13]", async () => {
  const plugin = await load("changes");
  const before = plugin.tools[0]?.spec.description;
  await collectAnswers(plugin.tools, [{ args: { say: "", exit: 1 } }]);
  expect(await callTool(plugin.tools, { say: "x" })).toContain("changed since it was loaded");
  await plugin.restart();
  expect(plugin.tools[0]?.spec.description).not.toBe(before);
  expect(await callTool(plugin.tools, { say: "x" })).toBe("x");
});

test("a plugin that exits repeatedly stops restarting, and one with restarts disabled does not restart", async () => {
  const plugin = await load("echo", { maxRestarts: 2 });
  for (let n = 0; n < 3; n++) await collectAnswers(plugin.tools, [{ args: { say: "", exit: 1 } }]);
  expect(await callTool(plugin.tools, { say: "x" })).toContain("started again 2 times");
  const once = await load("echo", { restart: "never" });
  await collectAnswers(once.tools, [{ args: { say: "", exit: 1 } }]);
  expect(await callTool(once.tools, { say: "x" })).toContain("has ended");
});

test("a closed plugin ends its child processes and answers no further call [T46]", async () => {
  const plugin = await load("forks");
  const { pid } = plugin;
  await plugin.close();
  expect(isAlive(pid)).toBe(false);
  expect(await callTool(plugin.tools, { say: "x" })).toContain("is closed");
});

test("a call abandoned while it waits passes its turn to the next call", async () => {
  const plugin = await load();
  const first = startCalls(plugin.tools, [{ id: "first", args: { say: "first", hold: true } }]);
  await isSent(first);
  const second = startCalls(plugin.tools, [{ id: "second", args: { say: "second" } }]);
  await isSent(second);
  const third = startCalls(plugin.tools, [{ id: "third", args: { say: "third" } }]);
  await isSent(third);
  second.handle.cancel("enough");
  await second.handle.result;
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(getMessageText((await first.answers())[0] ?? fail())).toBe("first");
  expect(getMessageText((await third.answers())[0] ?? fail())).toBe("third");
});

test("a second answer to a plugin call is not used for the next call", async () => {
  const world = createLoggedWorld();
  const { tools } = await load("echo", { world });
  const asked = [
    { id: "one", args: { say: "1", twice: true } },
    { id: "two", args: { say: "2", twice: true } },
    { id: "three", args: { say: "3" } },
  ];
  expect((await collectAnswers(tools, asked)).map(getMessageText)).toEqual(["1", "2", "3"]);
  expect(world.lines.filter(({ text }) => text.includes("dropped a reply without a call"))).toHaveLength(2);
});

test("a plugin with unusable tools is ended", async () => {
  const extra = join(folder, "pid");
  await expect(load("bad-schema", { extra })).rejects.toMatchObject({ code: "invalid_tool" });
  expect(isAlive(Number(readFileSync(extra, "utf8")))).toBe(false);
});

test.each([
  ["50,000 levels", "deep", "could not start: its description is nested deeper than 500 levels"],
  ["100,000 tools", "many", "could not start: its description has 100000 tools, the maximum is 2000"],
])("a plugin with a description of %s is refused and its process is ended [FX77]", async (_, mode, message) => {
  const extra = join(folder, `pid-${mode}`);
  await expect(load(mode, { extra })).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining(message),
  });
  expect(isAlive(Number(readFileSync(extra, "utf8")))).toBe(false);
});

test("a deeply nested reply of a plugin fails its call alone [FX77]", async () => {
  const { tools } = await load();
  const [deep, next] = await collectAnswers(tools, [{ args: { say: "", deep: 50_000 } }, { args: { say: "mine" } }], {
    strategy: "sequential",
  });
  expect(getMessageText(deep ?? fail())).toContain("a line is nested deeper than 500 levels");
  expect(getMessageText(next ?? fail())).toBe("mine");
});

test("a call during a plugin restart waits for the new process, and no second process starts", async () => {
  const log = join(folder, "restarts");
  const plugin = await load("record", { extra: log });
  const [said] = await Promise.all([callTool(plugin.tools, { say: "x" }), plugin.restart(), plugin.restart()]);
  expect(said).toBe("x");
  await plugin.close();
  expect(readFileSync(log, "utf8").split('{"type":"describe"}').length - 1).toBe(3);
});

test("an onStderr that throws ends the plugin, and its active call reports the error", async () => {
  const onStderr = () => {
    throw new Error("no room");
  };
  const plugin = await load("echo", { onStderr });
  expect(await callTool(plugin.tools, { say: "", stderr: "x", hold: true })).toContain("reading its output failed");
  await plugin.close();
  expect(await callTool((await load("echo", { onStderr })).tools, { say: "anew" })).toBe("anew");
});

test("a plugin that no longer reads its input is still ended", async () => {
  const world = virtualClock({ waitsForWork: false });
  const plugin = await load("two", { world });
  expect(await callTool(plugin.tools, { say: "last", deaf: true })).toBe("last");
  const large = startCalls(plugin.tools, [{ args: { say: "x".repeat(500_000), hold: true } }]);
  await isSent(large);
  const closed = plugin.close();
  await world.advance(2_000);
  await closed;
  expect((await large.answers())[0]?.isError).toBe(true);
});

test("an idle plugin does not keep our process alive and exits with it", async () => {
  const { stdout, exitCode } = await runProcess(process.execPath, [
    "--input-type=module",
    "--eval",
    `import { loadPlugin } from ${JSON.stringify(import.meta.resolve("../src/index.ts"))};
     const plugin = await loadPlugin(${JSON.stringify({ command: process.execPath, args: [join(import.meta.dirname, "fixtures/plugin.mjs")] })});
     console.log(plugin.pid);`,
  ]);
  expect(exitCode).toBe(0);
  expect(Number(stdout)).toBeGreaterThan(0);
  while (isAlive(Number(stdout))) await new Promise((resolve) => setImmediate(resolve));
});

test("a flood on plugin stderr blocks no call", async () => {
  expect(await callTool((await load("flood-stderr", { onStderr: () => undefined })).tools, { say: "here" })).toBe(
    "here",
  );
});

test("arguments refused by the plugin's schema do not reach the plugin", async () => {
  const { tools } = await load();
  const [wrong] = await collectAnswers(tools, [{ args: { say: 7 } }]);
  expect(getMessageText(wrong ?? fail())).toContain("say");
  expect(wrong?.isError).toBe(true);
});

/** Waits until the calls have started and done their synchronous work. */
async function isSent({ events }: { readonly events: readonly { readonly type: string }[] }): Promise<void> {
  for (let turns = 0; turns < 10; turns++) {
    if (!events.some(({ type }) => type === "tool.started")) turns = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Formats a variable reference of a configuration. */
function reference(name: string): string {
  return `$\{${name}}`;
}

function fail(): never {
  throw new Error("there is no answer");
}
