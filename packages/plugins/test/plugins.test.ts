import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  defineTool,
  type Json,
  jsonSchemaInput,
  modelToolOf,
  textOf,
  toolRegistry,
  type World,
} from "@statewright/core";
import { runProcess } from "@statewright/host";
import { virtualClock } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";
import { loadPlugin } from "../src/index.ts";
import { answers, begin, say } from "./support/calls.ts";
import { isAlive, load, loggedWorld } from "./support/plugins.ts";

const folder = mkdtempSync(join(tmpdir(), "statewright-plugins-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("S3.25 S3.28 S3.29 the first protocol, byte for byte: describe once, then one line for each call", async () => {
  const log = join(folder, "lines");
  const { tools } = await load("record", { extra: log });
  await answers(tools, [
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

test("T41 a call that is cancelled sends a plugin of the first protocol nothing that it does not know, and the next call gets its own answer", async () => {
  const log = join(folder, "cancelled");
  const plugin = await load("record", { extra: log });
  const held = begin(plugin.tools, [{ id: "c1", args: { say: "late", hold: true } }]);
  await isSent(held);
  held.handle.cancel("enough");
  await held.handle.result;
  const next = begin(plugin.tools, [{ id: "c2", args: { say: "mine" } }]);
  await isSent(next);
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(textOf((await next.answers())[0] ?? fail())).toBe("mine");
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

test("S3.26 S3.27 started once when it is loaded, and the same process over calls and runs", async () => {
  const plugin = await load();
  expect(isAlive(plugin.pid)).toBe(true);
  const details = async () => {
    const live = begin(plugin.tools, [{ args: { say: "a" } }]);
    await live.answers();
    return live.events.flatMap((event) => (event.type === "tool.completed" ? [event.result.details] : []));
  };
  const seen = [...(await details()), ...(await details()), ...(await details())];
  expect(seen).toEqual(Array.from({ length: 3 }, () => ({ pid: plugin.pid })));
});

test("S3.1 a compiled tool and one of a process stand in one registry, and a model can tell neither from the other", async () => {
  const { tools } = await load();
  const [echo] = tools;
  if (echo === undefined) return fail();
  const here = defineTool({
    name: "echo_here",
    description: echo.spec.description,
    input: jsonSchemaInput<{ readonly say: string }>(modelToolOf(echo.spec).inputSchema),
    run: ({ say: said }) => said,
  });
  const registry = toolRegistry<unknown, unknown>([here, ...tools]);
  expect(registry.names()).toEqual(["echo", "echo_here"]);
  const [theirs, ours] = registry.forModel();
  expect({ ...theirs, name: "" }).toEqual({ ...ours, name: "" });
  const said = await answers(
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

test("S3.30 S3.31 S3.32 S3.49 a reply is a result; one that says error is an error with its text; without the word it is none", async () => {
  const { tools } = await load();
  const [good, bad, plain] = await answers(
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

test("S3.36 S3.38 text blocks are one text, in order with nothing between; an image between them keeps its place", async () => {
  const { tools } = await load();
  const [joined, mixed] = await answers(tools, [
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

test("content that is neither text nor image reaches the model as it came, so that no answer is empty by mistake", async () => {
  const { tools } = await load();
  const say = (blocks: readonly Json[]) => ({ args: { say: "", blocks } });
  const [video, broken, mixed] = await answers(tools, [
    say([{ type: "video", url: "x" }]),
    say([{ type: "image", data: "AA==" }, 7, null]),
    say(["bare ", { type: "text", text: "text" }]),
  ]);
  expect(video).toMatchObject({ isError: false, content: [{ type: "text", text: '{"type":"video","url":"x"}' }] });
  expect(broken?.content).toEqual([{ type: "text", text: '{"type":"image","data":"AA=="}7null' }]);
  expect(mixed?.content).toEqual([{ type: "text", text: "bare text" }]);
});

test("S3.33 S3.56 F17 a process that ends in a call: that call is an error, the next one gets a new process, other plugins keep theirs", async () => {
  const plugin = await load();
  const other = await load();
  const [before, otherBefore] = [plugin.pid, other.pid];
  const [crashed] = await answers(plugin.tools, [{ args: { say: "", exit: 7 } }]);
  expect(crashed).toMatchObject({ isError: true });
  expect(textOf(crashed ?? fail())).toContain("ended with exit code 7");
  expect(await say(plugin.tools, { say: "again" })).toBe("again");
  expect(plugin.pid).not.toBe(before);
  expect(other.pid).toBe(otherBefore);
  expect(await say(other.tools, { say: "still here" })).toBe("still here");
});

test("a call that waits for its turn is not harmed by the end of the one before it: it was never sent", async () => {
  const { tools } = await load();
  const [crashed, next] = await answers(tools, [{ args: { say: "", exit: 7 } }, { args: { say: "mine" } }]);
  expect(crashed?.isError).toBe(true);
  expect(textOf(next ?? fail())).toBe("mine");
});

test("S3.34 T45 a line that begins an object and is not whole ends the call at once, and the next call gets its own answer", async () => {
  const { tools } = await load();
  const pretty = `${JSON.stringify({ content: [{ type: "text", text: "pretty" }] }, null, 2)}\n`;
  const [broken, next] = await answers(tools, [{ args: { say: "", raw: pretty } }, { args: { say: "mine" } }], {
    strategy: "sequential",
  });
  expect(broken?.isError).toBe(true);
  expect(textOf(broken ?? fail())).toMatch(/"echo".*one JSON object on one line/);
  expect(textOf(next ?? fail())).toBe("mine");
});

test("S3.35 stderr and what is no answer go to the log, never to the model", async () => {
  const world = loggedWorld();
  const lines: string[] = [];
  const plugin = await load("echo", { world, onStderr: (line) => lines.push(line) });
  const [answer] = await answers(plugin.tools, [{ args: { say: "answer", noise: true, stderr: "a warning" } }]);
  expect(textOf(answer ?? fail())).toBe("answer");
  await plugin.close();
  expect(lines).toEqual(["a warning"]);
  const logged = world.lines.filter(({ text }) => text.includes("no answer")).map(({ fields }) => fields);
  expect(logged).toEqual([{ line: "thinking ..." }, { line: '{"level":"info","msg":"half way"}' }, { line: "null" }]);
});

test("S3.35 stderr goes to the log where nobody else takes it, with the plugin's name", async () => {
  const world = loggedWorld();
  const plugin = await load("echo", { world });
  await answers(plugin.tools, [{ args: { say: "x", stderr: "a warning" } }]);
  await plugin.close();
  expect(world.lines.filter(({ level }) => level === "info").map(({ text }) => text)).toEqual([
    `${process.execPath}: a warning`,
  ]);
});

test("T45 answers cut inside a character, and marks that only look like line ends, arrive whole", async () => {
  const { tools } = await load();
  const strange = "é 🙂 \u2028 \u2029 \r \u0085 end";
  expect(await say(tools, { say: strange, pieces: true })).toBe(strange);
  expect(await say(tools, { say: "", raw: `{"content":[{"type":"text","text":"a\u2028b"}]}\n` })).toBe("a\u2028b");
});

test("T44 a line without end is cut off at its limit, and the next call is answered", async () => {
  const { tools } = await load("echo", { maxLineLength: 1_000 });
  const [long] = await answers(tools, [{ args: { say: "x".repeat(2_000) } }]);
  expect(textOf(long ?? fail())).toContain("longer than 1000 characters");
  expect(await say(tools, { say: "short" })).toBe("short");
});

test("a flood without a line's end ends the plugin at the limit, and no more of it is kept", async () => {
  const { tools } = await load("echo");
  const bytes = process.env["STATEWRIGHT_WHOLE"] === "1" ? 2 ** 30 : 2 ** 26;
  const before = process.memoryUsage.rss();
  const [flooded] = await answers(tools, [{ args: { say: "", flood: bytes } }]);
  expect(textOf(flooded ?? fail())).toContain("longer than 16777216 characters");
  expect(process.memoryUsage.rss() - before).toBeLessThan(2 ** 28);
  expect(await say(tools, { say: "short" })).toBe("short");
});

test("S3.40 what cannot be loaded says its path and why, and no process stays", async () => {
  const world = virtualClock({ waitsForWork: false });
  await expect(loadPlugin("no-such-program")).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining(
      "no-such-program (spawn ENOENT): there is no such command. Install it, correct its name, or give the full path of its file. See",
    ),
  });
  await expect(load("exit-at-start")).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("exit code 3"),
  });
  await expect(load("bad-describe")).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("no description"),
  });
  await expect(loadPlugin({ command: process.execPath, args: ["-e", "console.log('hello')"] })).rejects.toThrow(
    'ended with exit code 0, and wrote "hello", which is no description',
  );
  const silent = load("never-describes", { startTimeoutMs: 3_000, world });
  const told = expect(silent).rejects.toMatchObject({
    code: "plugin_failed",
    message: expect.stringContaining("within 3000 ms"),
  });
  while (world.timers === 0) await new Promise((resolve) => setImmediate(resolve));
  await world.advance(3_000);
  await world.advance(10_000);
  await told;
});

test("an option that there is not, or that cannot be meant, is refused before anything is started", async () => {
  const command = "no-such-program";
  const cases = [
    [{ command, arg: ["stats.py"] }, 'loadPlugin has no option "arg"'],
    [{ command, onTimeout: "die" }, 'onTimeout of the plugin "no-such-program" is "die"'],
    [{ command, restart: "always" }, 'restart of the plugin "no-such-program" is "always"'],
  ] as const;
  for (const [options, message] of cases)
    await expect(loadPlugin(options as never)).rejects.toMatchObject({
      code: "invalid_option",
      message: expect.stringContaining(message),
    });
});

test("what it writes before its description is no harm", async () => {
  expect(await say((await load("noise-before")).tools, { say: "hello" })).toBe("hello");
});

test("S3.43 D14 a plugin that sends a list has several tools, and is told which one is called", async () => {
  const { tools } = await load("list");
  expect(tools.map(({ spec }) => spec.name)).toEqual(["echo", "shout"]);
  expect(await say(tools, { say: "loud" }, "shout")).toBe("LOUD");
  expect(await say(tools, { say: "quiet" }, "echo")).toBe("quiet");
});

test("D32 a foreign name gets a snake_case name, and keeps its own towards the plugin", async () => {
  const { tools } = await load("echo", { extra: "name=Files/Read" });
  expect(tools[0]?.spec).toMatchObject({ name: "files_read", originalName: "Files/Read" });
});

test("S3.44 S3.45 R11 T47 arguments and variables are expanded from the environment, and never read by a shell", async () => {
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

test("D25 a plugin inherits our environment, and less where that is said", async () => {
  process.env["STATEWRIGHT_TEST_SECRET"] = "s";
  const script =
    'process.stdin.on("data",()=>console.log(JSON.stringify({name:"env",description:String(process.env.STATEWRIGHT_TEST_SECRET),parameters:{type:"object"}})))';
  try {
    const seen = async (inheritEnv?: boolean | readonly string[]) => {
      const plugin = await loadPlugin({
        command: process.execPath,
        args: ["-e", script],
        ...(inheritEnv === undefined ? {} : { inheritEnv }),
      });
      await plugin.close();
      return plugin.tools[0]?.spec.description;
    };
    expect(await seen()).toBe("s");
    expect(await seen(false)).toBe("undefined");
    expect(await seen(["STATEWRIGHT_TEST_SECRET"])).toBe("s");
  } finally {
    delete process.env["STATEWRIGHT_TEST_SECRET"];
  }
});

test("S3.54 D22 a plugin of the first protocol streams nothing, whatever it prints", async () => {
  const { tools } = await load();
  const live = begin(tools, [{ args: { say: "done", updates: true } }]);
  expect(textOf((await live.answers())[0] ?? fail())).toBe("done");
  expect(live.events.some(({ type }) => type === "tool.update" || type === "tool.progress")).toBe(false);
});

test("a plugin of the second protocol tells of its progress, answers out of order, and hears of cancels and the end", async () => {
  const lines: string[] = [];
  const plugin = await load("two", { onStderr: (line) => lines.push(line) });
  const live = begin(plugin.tools, [
    { id: "slow", args: { say: "slow", hold: true } },
    { id: "fast", args: { say: "fast" } },
  ]);
  await new Promise<void>((resolve) => {
    live.handle.on((event) => {
      if (event.type === "tool.completed" && event.callId === "fast") resolve();
    });
  });
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect((await live.answers()).map(textOf)).toEqual(["slow", "fast"]);
  const told = live.events.flatMap((event): readonly unknown[] =>
    event.type === "tool.progress" ? [event.text] : event.type === "tool.update" ? [event.partial] : [],
  );
  expect(told).toEqual(["begun fast", { content: [{ type: "text", text: "half of fast" }], details: { half: true } }]);
  const held = begin(plugin.tools, [{ id: "held", args: { say: "never", hold: true } }]);
  await new Promise<void>((resolve) => {
    held.handle.on((event) => {
      if (event.type === "tool.started") setImmediate(resolve);
    });
  });
  held.handle.cancel("enough");
  await held.handle.result;
  await say(plugin.tools, { say: "x" });
  await plugin.close();
  expect(lines).toEqual(["cancelled held", "shutting down"]);
});

test("two threads may use one id at the same time", async () => {
  const plugin = await load("two");
  const first = begin(plugin.tools, [{ id: "same", args: { say: "first", hold: true } }]);
  const second = begin(plugin.tools, [{ id: "same", args: { say: "second" } }]);
  expect(textOf((await second.answers())[0] ?? fail())).toBe("second");
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(textOf((await first.answers())[0] ?? fail())).toBe("first");
});

test("a call that is made again after it was given up is not answered by the late answer to its first attempt", async () => {
  const world = loggedWorld();
  const plugin = await load("two", { world });
  const first = begin(plugin.tools, [{ id: "c1", args: { say: "first", hold: true } }]);
  await isSent(first);
  first.handle.cancel("enough");
  await first.handle.result;
  const second = begin(plugin.tools, [{ id: "c1", args: { say: "second", hold: true } }]);
  await isSent(second);
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(textOf((await second.answers())[0] ?? fail())).toBe("second");
  expect(world.lines.map(({ text }) => text)).toContainEqual(expect.stringContaining("a late answer was dropped"));
});

test("S3.46 S3.47 S3.48 T40 D13 a call that is not answered in time is a timeout, told once in the log; the process lives, and the next call gets its own answer", async () => {
  const world = virtualClock({ waitsForWork: false });
  const lines: { readonly text: string; readonly fields: unknown }[] = [];
  const plugin = await load("echo", {
    timeoutMs: 500,
    world: { ...world, log: (level, text, fields) => void (level === "warn" && lines.push({ text, fields })) },
  });
  const { pid } = plugin;
  const late = begin(plugin.tools, [{ id: "late", args: { say: "too late", hold: true } }], { world });
  await isSent(late);
  await world.advance(499);
  expect(late.events.some(({ type }) => type === "tool.failed")).toBe(false);
  await world.advance(1);
  const [timedOut] = await late.answers();
  expect(textOf(timedOut ?? fail())).toBe("Timed out after 500 ms");
  expect(lines).toEqual([
    { text: expect.stringContaining("did not answer in time"), fields: { tool: "echo", callId: "late" } },
  ]);
  expect(isAlive(pid)).toBe(true);
  const next = begin(plugin.tools, [{ id: "next", args: { say: "mine" } }], { world });
  await isSent(next);
  process.kill(pid ?? 0, "SIGUSR2");
  expect(textOf((await next.answers())[0] ?? fail())).toBe("mine");
  expect(plugin.pid).toBe(pid);
});

test("D13 a late answer that does not come: the process is started anew when the next call has waited long enough", async () => {
  const clock = virtualClock({ waitsForWork: false });
  let isAnew = false;
  const world: World = {
    ...clock,
    log: (_level, text) => {
      if (text.includes("started anew")) isAnew = true;
    },
  };
  const plugin = await load("echo", { timeoutMs: 500, world, staleGraceMs: 400 });
  const { pid } = plugin;
  const silent = begin(plugin.tools, [{ args: { say: "never", silent: true } }], { world });
  await isSent(silent);
  await clock.advance(500);
  await silent.answers();
  const next = begin(plugin.tools, [{ args: { say: "mine" } }], { world });
  await isSent(next);
  await clock.advance(399);
  expect(isAnew).toBe(false);
  await clock.advance(1);
  expect(isAnew).toBe(true);
  expect(textOf((await next.answers())[0] ?? fail())).toBe("mine");
  expect(plugin.pid).not.toBe(pid);
  expect(isAlive(pid)).toBe(false);
});

test("S3.50 R13 a process that is started anew with other tools is refused until somebody restarts it; a restart takes them", async () => {
  const plugin = await load("changes");
  const before = plugin.tools[0]?.spec.description;
  await answers(plugin.tools, [{ args: { say: "", exit: 1 } }]);
  expect(await say(plugin.tools, { say: "x" })).toContain("have changed since it was loaded");
  await plugin.restart();
  expect(plugin.tools[0]?.spec.description).not.toBe(before);
  expect(await say(plugin.tools, { say: "x" })).toBe("x");
});

test("a plugin that ends again and again is not started for ever, and one that may not be started anew is not", async () => {
  const plugin = await load("echo", { maxRestarts: 2 });
  for (let n = 0; n < 3; n++) await answers(plugin.tools, [{ args: { say: "", exit: 1 } }]);
  expect(await say(plugin.tools, { say: "x" })).toContain("started anew 2 times");
  const once = await load("echo", { restart: "never" });
  await answers(once.tools, [{ args: { say: "", exit: 1 } }]);
  expect(await say(once.tools, { say: "x" })).toContain("has ended");
});

test("T46 a plugin that is closed takes what it started with it, and answers nothing more", async () => {
  const plugin = await load("forks");
  const { pid } = plugin;
  await plugin.close();
  expect(isAlive(pid)).toBe(false);
  expect(await say(plugin.tools, { say: "x" })).toContain("was closed");
});

test("a call that is given up while it waits for its turn leaves the turn to the one behind it", async () => {
  const plugin = await load();
  const first = begin(plugin.tools, [{ id: "first", args: { say: "first", hold: true } }]);
  await isSent(first);
  const second = begin(plugin.tools, [{ id: "second", args: { say: "second" } }]);
  await isSent(second);
  const third = begin(plugin.tools, [{ id: "third", args: { say: "third" } }]);
  await isSent(third);
  second.handle.cancel("enough");
  await second.handle.result;
  process.kill(plugin.pid ?? 0, "SIGUSR2");
  expect(textOf((await first.answers())[0] ?? fail())).toBe("first");
  expect(textOf((await third.answers())[0] ?? fail())).toBe("third");
});

test("a second answer to a call is not taken for the answer to the next one", async () => {
  const world = loggedWorld();
  const { tools } = await load("echo", { world });
  const asked = [
    { id: "one", args: { say: "1", twice: true } },
    { id: "two", args: { say: "2", twice: true } },
    { id: "three", args: { say: "3" } },
  ];
  expect((await answers(tools, asked)).map(textOf)).toEqual(["1", "2", "3"]);
  expect(world.lines.filter(({ text }) => text.includes("was not asked"))).toHaveLength(2);
});

test("a plugin whose tools cannot be used is ended", async () => {
  const extra = join(folder, "pid");
  await expect(load("bad-schema", { extra })).rejects.toMatchObject({ code: "invalid_tool" });
  expect(isAlive(Number(readFileSync(extra, "utf8")))).toBe(false);
});

test("a call during a restart waits for the new process, and no second one is started for it", async () => {
  const log = join(folder, "restarts");
  const plugin = await load("record", { extra: log });
  const [said] = await Promise.all([say(plugin.tools, { say: "x" }), plugin.restart(), plugin.restart()]);
  expect(said).toBe("x");
  await plugin.close();
  expect(readFileSync(log, "utf8").split('{"type":"describe"}').length - 1).toBe(3);
});

test("an onStderr that throws ends the plugin, and the call that it was at reads so", async () => {
  const onStderr = () => {
    throw new Error("no room");
  };
  const plugin = await load("echo", { onStderr });
  expect(await say(plugin.tools, { say: "", stderr: "x", hold: true })).toContain("what took its output failed");
  await plugin.close();
  expect(await say((await load("echo", { onStderr })).tools, { say: "anew" })).toBe("anew");
});

test("a plugin that has stopped reading is ended all the same", async () => {
  const world = virtualClock({ waitsForWork: false });
  const plugin = await load("two", { world });
  expect(await say(plugin.tools, { say: "last", deaf: true })).toBe("last");
  const large = begin(plugin.tools, [{ args: { say: "x".repeat(500_000), hold: true } }]);
  await isSent(large);
  const closed = plugin.close();
  await world.advance(2_000);
  await closed;
  expect((await large.answers())[0]?.isError).toBe(true);
});

test("a plugin that is not at work does not keep our process alive, and ends with it", async () => {
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

test("a flood on stderr stops nothing", async () => {
  expect(await say((await load("flood-stderr", { onStderr: () => undefined })).tools, { say: "here" })).toBe("here");
});

test("arguments that the plugin's schema refuses do not reach it", async () => {
  const { tools } = await load();
  const [wrong] = await answers(tools, [{ args: { say: 7 } }]);
  expect(textOf(wrong ?? fail())).toContain("say");
  expect(wrong?.isError).toBe(true);
});

/** Wait until the calls have begun, and what they do at once is done. */
async function isSent({ events }: { readonly events: readonly { readonly type: string }[] }): Promise<void> {
  for (let turns = 0; turns < 10; turns++) {
    if (!events.some(({ type }) => type === "tool.started")) turns = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A variable as configurations write it. */
function reference(name: string): string {
  return `$\{${name}}`;
}

function fail(): never {
  throw new Error("there is no answer");
}
