import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  decide,
  defineTool,
  type Json,
  memoryStore,
  type RunEvent,
  ToolError,
  type ToolOutput,
  type ToolResult,
  type ToolReturn,
} from "../../../../src/index.ts";
import { createCodec } from "../../../../src/store.ts";
import {
  Chat,
  call,
  createRawCall,
  createToolLoop,
  Desk,
  type DeskTool,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../../support/tool-loop.ts";
import { createVirtualWorld } from "../../../support/virtual-world.ts";

const anything = z.object({});

function createTool(run: () => unknown, name = "act"): DeskTool {
  return defineTool({ name, description: "Does what the test says.", input: anything, effect: "pure", run });
}

const bytes = "iVBORw0KGgo=";
const image = { type: "image", mimeType: "image/png", data: bytes };

test("a tool fails by a throw, a rejection, a returned error, isError, or an error next to its content [S3.9, T30, D6]", async () => {
  const failed = new Error("city not found: X");
  const ways: Readonly<Record<string, () => unknown>> = {
    throws: () => {
      throw failed;
    },
    rejects: () => Promise.reject(failed),
    "rejects with a tool error": () => Promise.reject(ToolError.failed("city not found: X")),
    "returns an error": () => failed,
    "returns a tool error": () => ToolError.failed("city not found: X"),
    "returns content with isError": () => ({ content: "city not found: X", isError: true }),
    "returns isError and a message": () => ({ isError: true, message: "city not found: X" }),
    "returns isError and an error": () => ({ isError: true, error: failed }),
    "returns content and an error": () => ({
      content: [{ type: "text", text: "city not found: X" }],
      error: failed,
    }),
    "returns content and the words of an error": () => ({ content: "city not found: X", error: "city not found: X" }),
    "returns an error alone in its field": () => ({ error: failed }),
  };
  for (const [way, run] of Object.entries(ways)) {
    const done = await runToolLoop({ tools: [createTool(run)], turns: [[call("act", {}, "c1")], ["sorry"]] });
    expect([way, ...listToolAnswers(done).map((answer) => [getAnswerText(answer), answer.isError])]).toEqual([
      way,
      ["city not found: X", true],
    ]);
    expect([way, ...listResults(done).map(({ error }) => [error?.kind, error?.message])]).toEqual([
      way,
      ["failed", "city not found: X"],
    ]);
    expect(done.wires[1]).toContain('"text":"city not found: X"}],"isError":true');
  }
  const kinds = await runToolLoop({
    tools: [createTool(() => ToolError.notFound("none"))],
    turns: [[call("act")], ["ok"]],
  });
  expect(listResults(kinds)[0]?.error?.kind).toBe("not_found");
  for (const data of [
    { error: "code 7" },
    { error: null, rows: 1 },
    { content: "text", error: null },
    { isError: false, a: 1 },
  ]) {
    const done = await runToolLoop({ tools: [createTool(() => data)], turns: [[call("act")], ["ok"]] });
    expect([data, listToolAnswers(done)[0]?.isError]).toEqual([data, false]);
  }
});

test("a returned text is one text block and no error [S3.8]", async () => {
  const done = await runToolLoop({ tools: [createTool(() => "It rains.")], turns: [[call("act")], ["ok"]] });
  expect(listToolAnswers(done)[0]).toMatchObject({ content: [{ type: "text", text: "It rains." }], isError: false });
});

test("an image in any supported notation is stored and sent in one notation [S4.11, T31]", async () => {
  const spellings = [
    image,
    { type: "image", data: bytes, mime_type: "image/png" },
    { type: "image", data: bytes, MIMEType: "image/png" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: bytes } },
    { type: "image", source: { type: "base64", mediaType: "image/png", data: bytes } },
    { type: "image", mime: "image/png", base64: bytes },
  ];
  for (const given of spellings) {
    const text = { type: "text", text: "Here it is" };
    const done = await runToolLoop({
      tools: [createTool(() => ({ content: [text, given] }))],
      turns: [[call("act")], ["ok"]],
    });
    expect(listToolAnswers(done)[0]?.content).toEqual([text, image]);
    expect(listResults(done)[0]?.content).toEqual([text, image]);
    expect(done.wires[1]).toContain(JSON.stringify(image));
  }
  for (const broken of [
    { type: "image" },
    { type: "image", data: 7, mimeType: "image/png" },
    { type: "image", data: bytes },
  ]) {
    const done = await runToolLoop({
      tools: [createTool(() => ({ content: [broken] }))],
      turns: [[call("act")], ["ok"]],
    });
    expect(getAnswerText(listToolAnswers(done)[0])).toMatch(/invalid content block \(number 1\)/);
  }
  const partial = await runToolLoop({
    tools: [
      defineTool({
        name: "act",
        description: "Shows.",
        input: anything,
        run: (_args, { update }) => {
          update?.({ content: [spellings[3] as never] });
          return "x";
        },
      }),
    ],
    turns: [[call("act")], ["ok"]],
  });
  expect(listEvents(partial, "tool.update").map(({ partial: shown }) => shown.content)).toEqual([[image]]);
});

test("content of an unknown kind is an error that names the kind and the known kinds, and failed results keep their text", async () => {
  const answerTo = async (returned: unknown) => {
    const done = await runToolLoop({ tools: [createTool(() => returned)], turns: [[call("act")], ["ok"]] });
    return [listResults(done)[0]?.error?.kind, getAnswerText(listToolAnswers(done)[0])];
  };
  expect(
    await answerTo({
      content: [
        { type: "text", text: "Here:" },
        { type: "video", url: "x" },
      ],
    }),
  ).toEqual([
    "invalid_output",
    'The tool returned a content block of the unknown type "video" (number 2); known types are text, image, file, json, artifact.',
  ]);
  expect(await answerTo({ isError: true, content: ["no", "bread"] })).toEqual(["failed", '["no","bread"]']);
  expect(await answerTo({ isError: true, error: { code: 7 } })).toEqual(["failed", '{"code":7}']);
  expect(await answerTo({ isError: true })).toEqual(["failed", "The tool failed without a message"]);
});

test("provider data and usage in a tool result are kept for programs and not sent [S1.71]", async () => {
  const store = memoryStore();
  const run = () => ({ content: "x", provider: { requestId: "SENTINEL-7" }, usage: { inputTokens: 5 } });
  const tool = defineTool({ name: "act", description: "Acts.", input: anything, run });
  const done = await runToolLoop({ tools: [tool], store, turns: [[call("act")], ["ok"]] });
  expect(listResults(done)[0]).toMatchObject({ provider: { requestId: "SENTINEL-7" }, usage: { inputTokens: 5 } });
  expect(done.wires.join()).not.toContain("SENTINEL");
  expect((await store.effects("t", "main")).map(({ outcome }) => outcome?.includes("SENTINEL-7"))).toContain(true);
});

test("details may be any data, are equal in event, store and resume, and are never sent to the model [S0.71, S2.77, S4.37]", async () => {
  const details = {
    percent: 0.5,
    bytes: 9_007_199_254_740_991,
    tail: ["a", "ü", null],
    nested: { deep: [{ x: false }] },
  };
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    run: (_args, { update }) => {
      update?.({ content: "half", details });
      return { content: "done", details };
    },
  });
  const store = memoryStore();
  const failing = {
    turns: [
      [call("act")],
      () => {
        throw new Error("the model is down");
      },
    ],
  } as const;
  const loop = createToolLoop({ tools: [tool], store, ...failing });
  await loop.start().result.catch(String);
  expect(listEvents(loop, "tool.update").map(({ partial }) => partial.details)).toEqual([details]);
  expect(listResults(loop).map((result) => result.details)).toEqual([details]);
  const again = createToolLoop({ tools: [tool], store, turns: [[], ["ok"]] });
  expect((await again.again().result).status).toBe("done");
  const savedOutcome = (await store.effects("t", "main")).find(({ kind }) => kind === "tool")?.outcome ?? "";
  expect((createCodec().decode(savedOutcome) as ToolResult).details).toEqual(details);
  expect([...loop.wires, ...again.wires].join()).not.toMatch(/percent|nested|9007199254740991/);
  expectTypeOf<ToolOutput["details"]>().toEqualTypeOf<unknown>();
});

test("details have the type that the tool returned, are optional, separate from the value, and never sent [S4.12, D8]", async () => {
  const tool = defineTool({
    name: "search",
    description: "Searches.",
    input: z.object({ word: z.string() }),
    output: z.object({ hits: z.int() }),
    effect: "pure",
    run: () => ({ content: "2 hits", value: { hits: 2 }, details: { files: ["SENTINEL-a.ts", "b.ts"] } }),
  });
  const done = await runToolLoop({ tools: [tool], turns: [[call("search", { word: "x" })], ["ok"]] });
  const [result] = listResults(done);
  expect([result?.value, result?.details]).toEqual([{ hits: 2 }, { files: ["SENTINEL-a.ts", "b.ts"] }]);
  expect(done.wires.join()).not.toContain("SENTINEL");
  const none = await runToolLoop({ tools: [createTool(() => "x")], turns: [[call("act")], ["ok"]] });
  expect(listResults(none)[0]).not.toHaveProperty("details");
});

test("details appear only in the end event [S3.13]", async () => {
  const tool = createTool(() => ({ content: "x", details: { note: "SENTINEL" } }));
  const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
  const holding = done.events.filter((event) => inspect(event, { depth: 20 }).includes("SENTINEL"));
  expect(holding.map(({ type }) => type)).toEqual(["tool.completed"]);
  expect(JSON.stringify(done.result)).not.toContain("SENTINEL");
});

test("a file system failure is reported with its path and cause [S0.25, S2.25]", async () => {
  const read = defineTool({
    name: "read_note",
    description: "Reads a note.",
    input: z.object({ path: z.string() }),
    effect: "pure",
    run: ({ path }) => {
      try {
        return readFileSync(path, "utf8");
      } catch (cause) {
        throw ToolError.failed(`Cannot read ${path}: ${(cause as Error).message}`, { cause });
      }
    },
  });
  const done = await runToolLoop({ tools: [read], turns: [[call("read_note", { path: "/none/of/this" })], ["ok"]] });
  expect(getAnswerText(listToolAnswers(done)[0])).toMatch(/^Cannot read \/none\/of\/this: ENOENT/);
  expect(listResults(done)[0]?.error?.kind).toBe("failed");
});

test("a missing field and a failing operation are errors, and a result carries its data as text and as details [S4.36]", async () => {
  const operate = defineTool({
    name: "operate",
    description: "Operates.",
    input: z.object({ requiredField: z.string().optional(), fail: z.boolean().optional() }),
    effect: "pure",
    run: async ({ requiredField, fail }) => {
      if (requiredField === undefined) throw new Error("requiredField is missing");
      try {
        if (fail === true) throw new Error("no route");
        const data = { field: requiredField, n: 1 };
        return { content: JSON.stringify(data), details: data };
      } catch (cause) {
        throw new Error(`Operation failed: ${(cause as Error).message}`, { cause });
      }
    },
  });
  const turns = [
    [
      call("operate", {}, "a"),
      call("operate", { requiredField: "x", fail: true }, "b"),
      call("operate", { requiredField: "x" }, "c"),
    ],
    ["ok"],
  ];
  const done = await runToolLoop({ tools: [operate], turns });
  expect(listToolAnswers(done).map((answer) => [getAnswerText(answer), answer.isError])).toEqual([
    ["requiredField is missing", true],
    ["Operation failed: no route", true],
    ['{"field":"x","n":1}', false],
  ]);
  expect(listResults(done).find(({ isError }) => !isError)?.details).toEqual({ field: "x", n: 1 });
});

test("the answer to every failing tool call carries the id of the provider, in the request and in the store [S1.62]", async () => {
  const world = createVirtualWorld();
  const slow = defineTool({
    name: "slow",
    description: "Slow.",
    input: anything,
    effect: "pure",
    timeoutMs: 10,
    graceMs: 0,
    run: () => new Promise<never>(() => undefined),
  });
  const strict = defineTool({
    name: "strict",
    description: "Strict.",
    input: z.object({ n: z.int() }),
    effect: "pure",
    run: () => "x",
  });
  const tools: DeskTool[] = [
    slow,
    strict,
    createTool(() => Promise.reject(new Error("thrown")), "bad"),
    createTool(() => "x", "denied"),
    createTool(() => new ToolError("limit", "no more today"), "limited"),
    createTool(() => new ToolError("skipped", "a person spoke"), "skipped"),
    createTool(() => ({ content: [{ type: "image" }] }), "broken"),
  ];
  const deny = {
    name: "deny",
    beforeTool: ({ call: { name } }: { readonly call: { readonly name: string } }) =>
      name === "denied"
        ? ({ action: "deny", reason: "not today" } as const)
        : name === "strict"
          ? decide.modify({ n: "x" })
          : undefined,
  };
  const calls = [
    call("nobody", {}, "toolu_1"),
    call("strict", { n: "x" }, "toolu_2"),
    createRawCall("strict", "{", "toolu_3"),
    call("strict", { n: 1 }, "toolu_4"),
    call("denied", {}, "toolu_5"),
    call("limited", {}, "toolu_6"),
    call("slow", {}, "toolu_7"),
    call("bad", {}, "toolu_8"),
    call("skipped", {}, "toolu_9"),
    call("broken", {}, "toolu_10"),
  ];
  const loop = createToolLoop({ tools, middleware: [deny], world, turns: [calls, ["sorry"]] });
  const end = loop.start().result;
  await world.advance(100);
  const ids = calls.map(({ id }) => id);
  expect(listToolAnswers(await end).map(({ callId, isError }) => [callId, isError])).toEqual(
    ids.map((id) => [id, true]),
  );
  const wired = (JSON.parse(loop.wires[1] ?? "{}") as { messages: { role: string; callId?: string }[] }).messages;
  expect(wired.filter(({ role }) => role === "tool").map(({ callId }) => callId)).toEqual(ids);
  for (const id of ids) expect(loop.saved()).toContain(id);
});

test("every tool call has exactly one end event, every started call is closed, and a refused call has no start event [S0.35, S2.35, D23]", async () => {
  const world = createVirtualWorld();
  const tools: DeskTool[] = [
    createTool(() => "x", "fine"),
    createTool(() => Promise.reject(new Error("no")), "bad"),
    defineTool({
      name: "slow",
      description: "Slow.",
      input: anything,
      run: () => new Promise<never>(() => undefined),
      graceMs: 10,
    }),
  ];
  const calls = [
    call("fine", {}, "a"),
    call("bad", {}, "b"),
    call("nobody", {}, "c"),
    call("fine", { extra: 1 }, "d"),
    call("slow", {}, "e"),
    createRawCall("fine", "{", "f"),
  ];
  const loop = createToolLoop({ tools, world, turns: [calls, ["never"]] });
  const handle = loop.start();
  await world.waitUntilIdle();
  handle.cancel();
  await world.advance(100);
  const end = await handle.result;
  expect(listToolAnswers(end)).toHaveLength(6);
  const listEventTypes = (id: string): readonly RunEvent["type"][] =>
    loop.events.flatMap((event) =>
      "callId" in event && event.callId === id && event.type.startsWith("tool.") ? [event.type] : [],
    );
  expect(Object.fromEntries(calls.map(({ id }) => [id, listEventTypes(id)]))).toEqual({
    a: ["tool.started", "tool.body_started", "tool.completed"],
    b: ["tool.started", "tool.body_started", "tool.failed"],
    c: ["tool.rejected", "tool.failed"],
    d: ["tool.rejected", "tool.failed"],
    e: ["tool.started", "tool.body_started", "tool.failed"],
    f: ["tool.rejected", "tool.failed"],
  });
});

test("a tool error cancelled in an active run is answered and not retried, and calls of a cancelled run are answered for the next run [D24]", async () => {
  let tries = 0;
  const quits = defineTool({
    name: "quits",
    description: "Quits.",
    input: anything,
    effect: "pure",
    retry: { attempts: 5, initialMs: 0, on: () => true },
    run: () => {
      tries++;
      return Promise.reject(ToolError.cancelled());
    },
  });
  const done = await runToolLoop({ tools: [quits], turns: [[call("quits")], ["I see"]] });
  expect([done.result.status, tries, listToolAnswers(done).map(getAnswerText)]).toEqual(["done", 1, ["Cancelled"]]);
  const world = createVirtualWorld();
  const hangs = createTool(() => new Promise<never>(() => undefined), "hangs");
  const store = memoryStore();
  const loop = createToolLoop({ tools: [hangs], world, store, turns: [[call("hangs", {}, "h")], ["never"]] });
  const handle = loop.start();
  await world.waitUntilIdle();
  handle.cancel();
  await world.advance(6_000);
  expect((await handle.result).status).toBe("cancelled");
  expect(loop.requests).toHaveLength(1);
  const next = createToolLoop({ tools: [hangs], store, turns: [[], ["hello again"]] });
  expect((await next.start().result).status).toBe("done");
  expect(next.wires[0]).toContain('"callId":"h"');
});

test("a tool body gets parsed arguments of the type of its schema [D20]", async () => {
  const seen: unknown[] = [];
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: z.object({ when: z.string().transform((text) => new Date(text)), n: z.int().default(3) }),
    effect: "pure",
    run: ({ when, n }) => {
      expectTypeOf(when).toEqualTypeOf<Date>();
      seen.push(when.getTime(), n);
      return "x";
    },
  });
  const done = await runToolLoop({
    tools: [tool],
    turns: [[call("act", { when: "1970-01-01T00:00:01Z" }, "a"), call("act", { when: 5 }, "b")], ["ok"]],
  });
  expect(seen).toEqual([1_000, 3]);
  expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([false, true]);
  expectTypeOf<ToolReturn<Json>>().toExtend<unknown>();
});

test("tool inputs are read-only: parallel tools cannot change each other's data, and changes go through the command of a result [D18]", async () => {
  const changed: string[] = [];
  const attempt = (what: string, target: unknown): void => {
    try {
      Object.assign(target as object, { forged: true });
      changed.push(what);
    } catch {
      // The result is frozen.
    }
  };
  const defined = defineTool({
    name: "meddle",
    description: "Meddles.",
    input: anything,
    inject: { cart: Chat.from((chat) => chat.cart), customer: Desk.from((desk) => desk) },
    effect: "pure",
    run: () => ({ content: "x", command: { update: { notes: ["mine"] } } }),
  });
  const meddle: DeskTool = {
    ...defined,
    call: (state, runtime, made) => {
      for (const [what, target] of Object.entries({ state, cart: state.cart, args: made.args, call: made }))
        attempt(what, target);
      for (const [what, target] of Object.entries({ context: runtime.context, injected: runtime.injected }))
        attempt(what, target);
      return defined.call(state, runtime, made);
    },
  };
  const done = await runToolLoop({
    tools: [meddle],
    turns: [[call("meddle", {}, "a"), call("meddle", {}, "b")], ["ok"]],
  });
  expect(changed).toEqual([]);
  expect(done.result.state.notes).toEqual(["mine", "mine"]);
});

test("a tool without safety metadata and effect runs as unclassified and once [D33]", async () => {
  const tool = defineTool({ name: "act", description: "Acts.", input: anything, run: () => "x" });
  expect([tool.spec.safety.access, tool.spec.effect]).toEqual(["unclassified", "once"]);
  const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["x"]);
});
