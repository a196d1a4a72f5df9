import { inspect } from "node:util";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { defineMiddleware, defineTool, inject, run, type ToolOutput, type ToolRuntime } from "../../../src/index.ts";
import {
  Chat,
  call,
  createToolLoop,
  Desk,
  type DeskTool,
  getAnswerText,
  type Loop,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const anything = z.object({});
const vault = { hoard: "SENTINEL-vault", get: (name: string) => (name === "KEY" ? "SENTINEL-secret" : undefined) };

test("a copy of the tool context works like the original, and printing either shows ids and no secret [S2.63]", async () => {
  const printed: string[] = [];
  const copies: ToolRuntime[] = [];
  const identities: (readonly unknown[])[] = [];
  const defined = defineTool({
    name: "look",
    description: "Looks.",
    input: anything,
    inject: {
      key: inject.secret("KEY"),
      client: inject.custom(() => ({ token: "SENTINEL-client" })),
      customer: Desk.from((desk) => desk.customer),
    },
    effect: "pure",
    run: (_args, runtime) => {
      const copy = { ...runtime };
      copies.push(copy);
      const { update, progress, emit, wait } = copy;
      update?.({ content: "from the copy" });
      progress("from the copy");
      emit("copied", { from: "the copy" });
      runtime.progress("from the original");
      for (const each of [runtime, copy]) {
        printed.push(
          inspect(each, { depth: 20, showHidden: false }),
          JSON.stringify(each),
          inspect({ each }, { depth: 20 }),
        );
        identities.push([each.callId, each.run, each.signal, each.idempotencyKey]);
      }
      return wait(0).then(() => "x");
    },
  });
  const raw: DeskTool = {
    ...defined,
    call: (state, runtime, made) => {
      printed.push(inspect(runtime, { depth: 20 }), JSON.stringify({ ...runtime }));
      return defined.call(state, runtime, made);
    },
  };
  const world = createVirtualWorld();
  const loop = createToolLoop({
    tools: [raw],
    world,
    secrets: vault,
    context: { customer: "SENTINEL-customer" },
    turns: [[call("look", {}, "c1")], ["ok"]],
  });
  const end = loop.start().result;
  await world.advance(10);
  expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["x"]);
  expect(printed).toHaveLength(8);
  expect(identities).toHaveLength(2);
  expect(identities[0]).toEqual(["c1", expect.anything(), expect.any(AbortSignal), expect.any(String)]);
  expect(identities[1]).toEqual(identities[0]);
  for (const text of printed) {
    expect(text).not.toContain("SENTINEL");
    expect(text).toMatch(/c1/);
    expect(text).toMatch(/"?progress"?: ?['"]\[function\]['"]/);
  }
  expect(
    listEvents(loop, "tool.update", "tool.progress").map((event) => [
      event.callId,
      event.type === "tool.progress" ? event.text : event.partial.content,
    ]),
  ).toEqual([
    ["c1", "from the copy"],
    ["c1", "from the copy"],
    ["c1", "from the original"],
  ]);
  expect(listEvents(loop, "custom").map(({ payload }) => payload)).toEqual([{ from: "the copy" }]);
});

test("toolUpdates false emits no update or progress, and the run ends in the same state", async () => {
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    inject: { say: inject.custom(({ progress }) => progress) },
    run: (_args, { update, progress, injected }) => {
      progress("working");
      injected.say("working too");
      update?.({ content: "half" });
      return update === undefined ? "silent" : "heard";
    },
  });
  const options = { tools: [tool], turns: [[call("act")], ["ok"]] } as const;
  const withoutUpdates = await runToolLoop({ ...options, toolUpdates: false });
  expect(listEvents(withoutUpdates, "tool.update", "tool.progress")).toEqual([]);
  expect(listToolAnswers(withoutUpdates).map(getAnswerText)).toEqual(["silent"]);
  const withUpdates = await runToolLoop(options);
  expect(listEvents(withUpdates, "tool.update", "tool.progress")).toHaveLength(3);
  expect(listEvents(withoutUpdates, "tool.completed")).toHaveLength(1);
  const listTypes = (loop: Loop): readonly string[] =>
    loop.events.map(({ type }) => type).filter((type) => !/update|progress/.test(type));
  expect(listTypes(withoutUpdates)).toEqual(listTypes(withUpdates));
  for (const wrong of ["no", 1, null])
    expect(() => run({} as never, { toolUpdates: wrong } as never)).toThrow(/invalid_option/);
});

test("a tool works without a listener: called directly without callbacks, and in a run with updates off [S0.13, S2.13, S4.9]", async () => {
  const seen: unknown[] = [];
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    run: (_args, runtime) => {
      const { update, progress } = runtime as Partial<ToolRuntime>;
      seen.push([update === undefined, progress === undefined]);
      progress?.("working");
      update?.({ content: "half" });
      return "done";
    },
  });
  expect(await tool.call({}, { context: {}, injected: {} } as never, { id: "c", name: "act", args: {} })).toBe("done");
  expect(seen).toEqual([[true, true]]);
  const options = { tools: [tool], turns: [[call("act")], ["ok"]] } as const;
  const withoutUpdates = await runToolLoop({ ...options, toolUpdates: false });
  const withUpdates = await runToolLoop(options);
  expect(listEvents(withoutUpdates, "tool.update", "tool.progress")).toEqual([]);
  expect(listEvents(withUpdates, "tool.update", "tool.progress")).toHaveLength(2);
  expect(JSON.stringify(withoutUpdates.result.state)).toBe(JSON.stringify(withUpdates.result.state));
  expect(seen.slice(1)).toEqual([
    [true, false],
    [false, false],
  ]);
});

test("the update callback may be undefined, so that a tool can check before building a partial result [S3.14, S4.9]", async () => {
  expectTypeOf<ToolRuntime["update"]>().toEqualTypeOf<((partial: ToolOutput) => void) | undefined>();
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    run: (_args, { update }) => (update === undefined ? "nobody listens" : "x"),
  });
  const bare = { context: {}, injected: {}, progress: () => undefined } as never;
  expect(await tool.call({}, bare, { id: "c", name: "act", args: {} })).toBe("nobody listens");
});

test("an update filter also filters progress lines [T26]", async () => {
  const mask = (text: string): string => text.replaceAll(/\d{16}/g, "[card]");
  const redact = defineMiddleware({
    name: "redact",
    onToolUpdate: ({ partial }) =>
      typeof partial.content === "string"
        ? partial.content.includes("silence")
          ? null
          : { ...partial, content: mask(partial.content) }
        : partial,
    afterTool: ({ result }) => ({
      ...result,
      content: result.content.map((block) => (block.type === "text" ? { ...block, text: mask(block.text) } : block)),
    }),
  });
  const card = "4000123412341234";
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    run: (_args, { update, progress }) => {
      update?.({ content: `card ${card}` });
      progress(`charging ${card}`);
      progress("silence");
      return `charged ${card}`;
    },
  });
  const done = await runToolLoop({ tools: [tool], middleware: [redact], turns: [[call("act")], ["ok"]] });
  expect(inspect(done.events, { depth: 20 })).not.toContain(card);
  expect(listEvents(done, "tool.update").map(({ partial }) => partial.content)).toEqual(["card [card]"]);
  expect(listEvents(done, "tool.progress").map(({ text }) => text)).toEqual(["charging [card]"]);
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["charged [card]"]);
});

test("partial results appear in no request after a resume [T23]", async () => {
  const store = (await import("../../../src/index.ts")).memoryStore();
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    run: (_args, { update, progress }) => {
      update?.({ content: "SENTINEL", details: "SENTINEL" });
      progress("SENTINEL");
      return "done";
    },
  });
  const down = (): never => {
    throw new Error("the model is down");
  };
  const loop = createToolLoop({ tools: [tool], store, turns: [[call("act")], down] });
  await loop.start().result.catch(String);
  const again = createToolLoop({ tools: [tool], store, turns: [[], ["ok"]] });
  expect((await again.again().result).status).toBe("done");
  expect(again.requests).toHaveLength(1);
  expect([...loop.wires, ...again.wires, loop.saved(), again.saved()].join()).not.toContain("SENTINEL");
});

test("a tool that reads rows updates at every hundredth row, returns a final text, and reads no row after a cancel [S0.43, S2.43]", async () => {
  for (const cancelAt of [undefined, 250]) {
    const world = createVirtualWorld();
    const treated: number[] = [];
    let cancel: (() => void) | undefined;
    const rows = defineTool({
      name: "process_rows",
      description: "Treats every row of a table.",
      input: z.object({ total: z.int() }),
      effect: "pure",
      run: async ({ total }, { update, signal, wait }) => {
        for (let row = 0; row < total; row++) {
          if (signal.aborted) throw signal.reason;
          if (row % 100 === 0)
            update?.({ content: `Processed ${row}/${total} rows`, details: { progress: row / total } });
          treated.push(row);
          if (row === cancelAt) cancel?.();
          if (row % 50 === 0) await wait(1);
        }
        return `Processed all ${total} rows`;
      },
    });
    const loop = createToolLoop({ tools: [rows], world, turns: [[call("process_rows", { total: 400 })], ["ok"]] });
    const handle = loop.start();
    cancel = () => handle.cancel();
    await world.advance(1_000);
    const end = await handle.result;
    const observed = listEvents(loop, "tool.update").map(({ partial }) => [partial.content, partial.details]);
    const upTo = cancelAt === undefined ? [0, 100, 200, 300] : [0, 100, 200];
    expect(observed).toEqual(upTo.map((row) => [`Processed ${row}/400 rows`, { progress: row / 400 }]));
    expect(listToolAnswers(end).map(getAnswerText)).toEqual([
      cancelAt === undefined ? "Processed all 400 rows" : "Cancelled",
    ]);
    expect(treated.at(-1)).toBe(cancelAt ?? 399);
  }
});

test("a fast reader gets every update; a slow reader gets the newest per call with a count of missed updates; none is saved [D22]", async () => {
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: anything,
    run: (_args, { update }) => {
      for (let n = 1; n <= 5_000; n++) update?.({ content: `${n}` });
      return "x";
    },
  });
  const loop = createToolLoop({ tools: [tool], turns: [[call("act", {}, "a")], ["ok"]] });
  const handle = loop.start();
  const slow = handle.events({ views: ["tools"] });
  await handle.result;
  expect(listEvents(loop, "tool.update")).toHaveLength(5_000);
  const late: string[] = [];
  let dropped = 0;
  for await (const event of slow)
    if (event.type === "tool.update") {
      late.push(String(event.partial.content));
      dropped += event.dropped ?? 0;
    }
  expect([late.at(-1), late.length + dropped, late.length < 2_000]).toEqual(["5000", 5_000, true]);
  expect(loop.saved()).not.toContain("4999");
  const numbers = loop.events.flatMap((event) =>
    event.type === "step.committed" || event.type.startsWith("run.") ? [event.seq] : [],
  );
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  expect(listResults(loop)).toHaveLength(1);
  expect(Chat.channels).toBeDefined();
});
