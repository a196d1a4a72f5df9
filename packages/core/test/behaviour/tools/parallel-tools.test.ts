import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, isStatewrightError, toolNode } from "../../../src/index.ts";
import { dedupeCallIds } from "../../../src/run/conversation/pending-calls.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  gate,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const named = z.object({ name: z.string() });

/** Tool that takes `ms` of virtual time and logs its start and end. */
function slow(world: VirtualWorld, log: string[], ms: number): DeskTool {
  return defineTool({
    name: "work",
    description: "Work.",
    input: named,
    effect: "pure",
    run: async ({ name }) => {
      log.push(`+${name} ${world.clock.monotonic()}`);
      await new Promise<void>((resolve) => world.schedule.after(ms, resolve));
      log.push(`-${name} ${world.clock.monotonic()}`);
      return name;
    },
  });
}

const works = (...names: string[]) => names.map((name) => call("work", { name }, name));

describe("tool call strategies", () => {
  test("tool calls run with one of three strategies, and in parallel by default [S0.55, S2.55]", async () => {
    for (const strategy of [undefined, "parallel", "sequential", { batch: 2 }] as const) {
      const world = createVirtualWorld();
      const log: string[] = [];
      const loop = createToolLoop({
        tools: [slow(world, log, 50)],
        world,
        ...(strategy === undefined ? {} : { strategy }),
        turns: [works("a", "b", "c"), ["ok"]],
      });
      const end = loop.start().result;
      await world.advance(1_000);
      expect((await end).status).toBe("done");
      const parallel = ["+a 0", "+b 0", "+c 0", "-a 50", "-b 50", "-c 50"];
      const expected =
        strategy === "sequential"
          ? ["+a 0", "-a 50", "+b 50", "-b 100", "+c 100", "-c 150"]
          : typeof strategy === "object"
            ? ["+a 0", "+b 0", "-a 50", "-b 50", "+c 50", "-c 100"]
            : parallel;
      expect(log).toEqual(expected);
    }
  });

  test("batches of three tool calls run one after the other, and the last batch may be smaller", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const loop = createToolLoop({
      tools: [slow(world, log, 10)],
      world,
      strategy: { batch: 3 },
      turns: [works("a", "b", "c", "d", "e", "f", "g"), ["ok"]],
    });
    const end = loop.start().result;
    await world.advance(1_000);
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["a", "b", "c", "d", "e", "f", "g"]);
    expect(log.filter((line) => line.startsWith("+")).map((line) => line.split(" ")[1])).toEqual([
      "0",
      "0",
      "0",
      "10",
      "10",
      "10",
      "20",
    ]);
  });

  test("two tool calls that increment one counter without a lock give two with the strategy sequential", async () => {
    let counter = 0;
    const tool = defineTool({
      name: "count",
      description: "Count.",
      input: z.object({}),
      run: async () => {
        const read = counter;
        await Promise.resolve();
        counter = read + 1;
        return `${counter}`;
      },
    });
    await runToolLoop({
      tools: [tool],
      strategy: "sequential",
      turns: [[call("count", {}, "a"), call("count", {}, "b")], ["ok"]],
    });
    expect(counter).toBe(2);
  });

  test("maxConcurrency 2 bounds the active tool calls, 1 keeps call order, and an invalid value is refused [S1.12]", async () => {
    for (const maxConcurrency of [1, 2]) {
      const world = createVirtualWorld();
      const log: string[] = [];
      const loop = createToolLoop({
        tools: [slow(world, log, 10)],
        world,
        maxConcurrency,
        turns: [works("a", "b", "c", "d", "e"), ["ok"]],
      });
      const end = loop.start().result;
      await world.advance(1_000);
      expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["a", "b", "c", "d", "e"]);
      let open = 0;
      const most = Math.max(...log.map((line) => (line.startsWith("+") ? ++open : open--)));
      expect(most).toBe(maxConcurrency);
      if (maxConcurrency === 1)
        expect(log.map((line) => line.slice(0, 2))).toEqual([
          "+a",
          "-a",
          "+b",
          "-b",
          "+c",
          "-c",
          "+d",
          "-d",
          "+e",
          "-e",
        ]);
      expect(log.filter((line) => line.startsWith("+")).map((line) => line[1])).toEqual(["a", "b", "c", "d", "e"]);
    }
    const [tool] = [slow(createVirtualWorld(), [], 1)];
    for (const count of [0, -1, 1.5, Number.NaN])
      for (const options of [{ maxConcurrency: count }, { strategy: { batch: count } }]) {
        const thrown = ((): unknown => {
          try {
            return toolNode({ tools: [tool], ...options });
          } catch (error) {
            return error;
          }
        })();
        expect([count, isStatewrightError(thrown, "invalid_option")]).toEqual([count, true]);
      }
  });
});

describe("tool calls of one message", () => {
  test("all tool calls of a message complete before the next model request, which has each answer once and in order [S0.31, S2.31, S0.36, S2.36]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const loop = createToolLoop({ tools: [slow(world, log, 10)], world, turns: [works("a", "b", "c"), ["ok"]] });
    const end = loop.start().result;
    await world.advance(5);
    expect(loop.requests).toHaveLength(1);
    await world.advance(100);
    await end;
    expect(loop.requests).toHaveLength(2);
    expect(loop.requests[1]?.messages.slice(2).map((message) => message.role === "tool" && message.callId)).toEqual([
      "a",
      "b",
      "c",
    ]);
  });

  test("answers are stored in call order, and end events are emitted in order of completion [T9]", async () => {
    const doors = { a: gate<string>(), b: gate<string>(), c: gate<string>() };
    const tool = defineTool({
      name: "wait",
      description: "Wait.",
      input: z.object({ door: z.enum(["a", "b", "c"]) }),
      effect: "pure",
      run: ({ door }) => doors[door].passed,
    });
    const loop = createToolLoop({
      tools: [tool],
      turns: [
        [call("wait", { door: "a" }, "a"), call("wait", { door: "b" }, "b"), call("wait", { door: "c" }, "c")],
        ["ok"],
      ],
    });
    const end = loop.start().result;
    for (const door of ["c", "a", "b"] as const) {
      await loop.world.waitUntilIdle();
      doors[door].open(door);
    }
    expect(listToolAnswers(await end).map(({ callId }) => callId)).toEqual(["a", "b", "c"]);
    expect(listEvents(loop, "tool.completed").map(({ callId }) => callId)).toEqual(["c", "a", "b"]);
  });

  test("a tool serves two parallel calls with separate contexts [S0.6, S2.6]", async () => {
    const met = gate();
    let inside = 0;
    const seen: [string, string, boolean][] = [];
    const tool = defineTool({
      name: "meet",
      description: "Meet.",
      input: named,
      run: async ({ name }, runtime) => {
        const { callId, update, progress } = runtime;
        inside += 1;
        if (inside === 2) met.open();
        await met.passed;
        seen.push([name, callId, runtime.callId === callId]);
        progress(`hello from ${name}`);
        update?.({ content: `part of ${name}` });
        return name;
      },
    });
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("meet", { name: "x" }, "idX"), call("meet", { name: "y" }, "idY")], ["ok"]],
    });
    expect(seen).toEqual([
      ["x", "idX", true],
      ["y", "idY", true],
    ]);
    for (const event of listEvents(done, "tool.progress"))
      expect(event.text).toBe(event.callId === "idX" ? "hello from x" : "hello from y");
    for (const event of listEvents(done, "tool.update"))
      expect(event.partial.content).toBe(event.callId === "idX" ? "part of x" : "part of y");
    expect(listToolAnswers(done).map((answer) => [answer.callId, getAnswerText(answer)])).toEqual([
      ["idX", "x"],
      ["idY", "y"],
    ]);
  });

  test("an error in one tool call neither skips nor aborts another under any strategy [S0.67, S2.73]", async () => {
    for (const strategy of ["parallel", "sequential", { batch: 2 }] as const) {
      const tool = defineTool({
        name: "act",
        description: "Act.",
        input: named,
        run: async ({ name }, { signal }) => {
          await Promise.resolve();
          if (name === "b") throw new Error("b broke");
          return signal.aborted ? "aborted" : name;
        },
      });
      const done = await runToolLoop({
        tools: [tool],
        strategy,
        turns: [
          [call("act", { name: "a" }, "a"), call("act", { name: "b" }, "b"), call("act", { name: "c" }, "c")],
          ["ok"],
        ],
      });
      expect(listToolAnswers(done).map((answer) => [answer.callId, getAnswerText(answer), answer.isError])).toEqual([
        ["a", "a", false],
        ["b", "b broke", true],
        ["c", "c", false],
      ]);
      expect(done.requests).toHaveLength(2);
    }
  });

  test("two tool calls with one id get separate answers, and the stored message has an id for each [T8]", async () => {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: named,
      run: ({ name }, { callId }) => `${name} as ${callId}`,
    });
    const done = await runToolLoop({
      tools: [tool],
      turns: [
        [
          call("act", { name: "one" }, "x"),
          call("act", { name: "two" }, "x"),
          call("act", { name: "three" }, "x_2"),
          call("act", { name: "four" }, "x"),
          call("act", { name: "five" }, ""),
        ],
        ["ok"],
      ],
    });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual([
      "one as x",
      "two as x_3",
      "three as x_2",
      "four as x_4",
      "five as ",
    ]);
    expect(new Set(done.result.state.messages.map(({ id }) => id)).size).toBe(done.result.state.messages.length);
    expect(listEvents(done, "tool.completed")).toHaveLength(5);
    // The emitted message equals the saved message.
    const [observed] = listEvents(done, "message.completed");
    expect(observed?.message).toEqual(done.result.state.messages[1]);
  });

  test("20,000 tool calls with one id get unique ids without quadratic work", () => {
    const many = dedupeCallIds(Array.from({ length: 20_000 }, () => call("act", {}, "x")));
    expect(new Set(many.map((block) => (block.type === "call" ? block.id : ""))).size).toBe(many.length);
    expect(many.at(-1)).toMatchObject({ id: "x_20000" });
  });

  test("a tool call id repeated in a later turn is a separate call", async () => {
    const tool = defineTool({ name: "act", description: "Act.", input: named, run: ({ name }) => name });
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("act", { name: "one" }, "x")], [call("act", { name: "two" }, "x")], ["ok"]],
    });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["one", "two"]);
  });

  test("a start event is emitted for each tool call before its tool runs [S0.32, S2.32]", async () => {
    const order: string[] = [];
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: named,
      run: ({ name }) => void order.push(`run ${name}`),
    });
    const loop = createToolLoop({
      tools: [tool],
      turns: [[call("act", { name: "a" }, "a"), call("act", { name: "b" }, "b")], ["ok"]],
    });
    const handle = loop.start();
    handle.on((event) => {
      if (event.type === "tool.started") order.push(`started ${event.callId}`);
    });
    await handle.result;
    for (const name of ["a", "b"]) expect(order.indexOf(`started ${name}`)).toBeLessThan(order.indexOf(`run ${name}`));
    expect(order).toHaveLength(4);
  });

  test("a tool changes state by a command in its result, and sibling calls do not see the change before the batch has ended", async () => {
    const seen: number[] = [];
    const tool = defineTool({
      name: "note",
      description: "Note.",
      input: named,
      run: async ({ name }) => ({ content: "noted", command: { update: { notes: [name] } } }),
    });
    const watching: DeskTool = {
      spec: { ...tool.spec, name: "watch" },
      call: (state) => void seen.push(state.notes.length),
    };
    const done = await runToolLoop({
      tools: [tool, watching],
      strategy: "sequential",
      turns: [
        [call("note", { name: "a" }, "a"), call("watch", { name: "w" }), call("note", { name: "b" }, "b")],
        ["ok"],
      ],
    });
    expect(done.result.state.notes).toEqual(["a", "b"]);
    expect(seen).toEqual([0]);
    expect(done.wires.join()).not.toContain("command");
  });
});

describe("tool results", () => {
  test("content blocks reach the model unchanged and in order [S0.14, S2.14, S3.10]", async () => {
    const content = [
      { type: "text", text: "first" },
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "json", value: { n: [1, 2] } },
      { type: "text", text: "last" },
    ] as const;
    const tool = defineTool({ name: "show", description: "Show.", input: z.object({}), run: () => ({ content }) });
    const done = await runToolLoop({ tools: [tool], turns: [[call("show")], ["ok"]] });
    expect((JSON.parse(done.wires[1] ?? "").messages.at(-1) as { content: unknown }).content).toEqual(content);
  });

  test("the details of a tool result may be null or absent [S0.16, S2.16]", async () => {
    const none = defineTool({
      name: "none",
      description: "None.",
      input: z.object({}),
      run: () => ({ content: "x", details: null }),
    });
    const absent = defineTool({
      name: "absent",
      description: "Absent.",
      input: z.object({}),
      run: () => ({ content: "x" }),
    });
    const done = await runToolLoop({ tools: [none, absent], turns: [[call("none"), call("absent")], ["ok"]] });
    expect(listResults(done).map((result) => [result.name, "details" in result, result.details])).toEqual([
      ["none", true, null],
      ["absent", false, undefined],
    ]);
  });

  test("each tool call gives one tool message with id, name, content and error flag, and without partial results [S0.34, S2.34, S0.39, S2.39]", async () => {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: named,
      run: ({ name }, { update }) => {
        for (let index = 0; index < 5; index++) update?.({ content: `partial ${index}` });
        if (name === "b") throw new Error("no");
        return { content: `final ${name}`, value: { secret: 1 }, details: { more: 2 } };
      },
    });
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("act", { name: "a" }, "a"), call("act", { name: "b" }, "b")], ["ok"]],
    });
    expect(listToolAnswers(done)).toEqual([
      {
        role: "tool",
        id: expect.any(String),
        callId: "a",
        name: "act",
        content: [{ type: "text", text: "final a" }],
        isError: false,
      },
      {
        role: "tool",
        id: expect.any(String),
        callId: "b",
        name: "act",
        content: [{ type: "text", text: "no" }],
        isError: true,
      },
    ]);
    expect(listEvents(done, "tool.update")).toHaveLength(10);
  });

  test("the end event of a tool call carries the error flag and the name of the tool [S0.37, S2.37]", async () => {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: named,
      run: ({ name }) => (name === "b" ? Promise.reject(new Error("no")) : "yes"),
    });
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("act", { name: "a" }, "a"), call("act", { name: "b" }, "b")], ["ok"]],
    });
    expect(
      listEvents(done, "tool.completed", "tool.failed").map(({ tool: name, callId, result }) => [
        name,
        callId,
        result.isError,
      ]),
    ).toEqual([
      ["act", "a", false],
      ["act", "b", true],
    ]);
  });

  /** Tools that return a result with a forged id and name, or with an error, each after 70 ms. */
  async function forgedResults(): Promise<ReturnType<typeof listResults>> {
    const world = createVirtualWorld();
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: named,
      effect: "pure",
      run: ({ name }) =>
        new Promise((resolve) =>
          world.schedule.after(70, () =>
            resolve({
              content: name,
              callId: "forged",
              name: "forged",
              isError: name === "b",
              ...(name === "b" ? {} : { value: { n: 1 } }),
            }),
          ),
        ),
    });
    const loop = createToolLoop({
      tools: [tool],
      world,
      turns: [[call("act", { name: "a" }, "a"), call("act", { name: "b" }, "b")], ["ok"]],
    });
    const end = loop.start().result;
    await world.advance(100);
    await end;
    return listResults(loop);
  }

  test("a tool result has the id and name of its call, whatever the tool returns, with blocks and a value [S1.65, S1.66, S1.67, S1.68]", async () => {
    expect(await forgedResults()).toEqual([
      {
        callId: "a",
        name: "act",
        content: [{ type: "text", text: "a" }],
        value: { n: 1 },
        isError: false,
        attempts: 1,
        elapsedMs: 70,
      },
      {
        callId: "b",
        name: "act",
        content: [{ type: "text", text: "b" }],
        isError: true,
        error: { kind: "failed", disposition: "repair", message: "b" },
        attempts: 1,
        elapsedMs: 70,
      },
    ]);
  });

  test("a tool result has an error flag and its duration [S1.70, S1.72]", async () => {
    const results = await forgedResults();
    expect(results.map(({ isError, elapsedMs }) => [isError, elapsedMs])).toEqual([
      [false, 70],
      [true, 70],
    ]);
  });

  test("a tool that writes to its arguments changes neither transcript nor events nor checkpoint [T17]", async () => {
    const refusals: unknown[] = [];
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: z.object({ list: z.array(z.string()), deep: z.object({ n: z.number() }) }),
      run: (args) => {
        for (const write of [
          () => args.list.push("changed"),
          () => (args.deep.n = 99),
          () => delete (args as { list?: unknown }).list,
        ]) {
          try {
            write();
          } catch (error) {
            refusals.push(error);
          }
        }
        return "tried";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act", { list: ["a"], deep: { n: 1 } })], ["ok"]] });
    expect(refusals.map((error) => error instanceof TypeError)).toEqual([true, true, true]);
    expect(JSON.stringify(done.result.state) + JSON.stringify(done.events) + done.saved()).not.toMatch(/changed|99/);
  });
});

describe("tool updates", () => {
  const input = z.object({});

  test("the call id of the model is used in start, updates, progress, end, answer and next request [S0.8, S2.8, S3.3]", async () => {
    let inTool: string | undefined;
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { callId, update, progress }) => {
        inTool = callId;
        update?.({ content: "1" });
        progress("2");
        return "3";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act", {}, "toolu_01-Ab")], ["ok"]] });
    const events = listEvents(done, "tool.started", "tool.update", "tool.progress", "tool.completed");
    expect(events.map(({ type, callId }) => [type, callId])).toEqual([
      ["tool.started", "toolu_01-Ab"],
      ["tool.update", "toolu_01-Ab"],
      ["tool.progress", "toolu_01-Ab"],
      ["tool.completed", "toolu_01-Ab"],
    ]);
    expect(inTool).toBe("toolu_01-Ab");
    expect(listToolAnswers(done)[0]?.callId).toBe("toolu_01-Ab");
    expect(done.wires[1]).toContain('"callId":"toolu_01-Ab"');
  });

  test("each tool update and progress line is one event equal to the given value [S0.11, S2.11, S0.12, S2.12, S3.15]", async () => {
    const partials = [
      {
        content: [
          { type: "text", text: "a" },
          { type: "image", mimeType: "image/png", data: "AA" },
        ],
        details: { n: 1, list: [null, "x"] },
      },
      { content: "b" },
    ] as const;
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { update, progress }) => {
        for (const partial of partials) update?.(partial);
        for (const text of ["one", "two", "three"]) progress(text);
        return "x";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(listEvents(done, "tool.update").map(({ partial, tool: name, callId }) => [partial, name, callId])).toEqual(
      partials.map((partial) => [partial, "act", "id_act"]),
    );
    expect(listEvents(done, "tool.progress").map(({ text, tool: name, callId }) => [text, name, callId])).toEqual(
      ["one", "two", "three"].map((text) => [text, "act", "id_act"]),
    );
  });

  test("partial results appear in no request, stored message or checkpoint [S0.38, S2.38]", async () => {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { update, progress }) => {
        update?.({ content: "SENTINEL", details: { x: "SENTINEL" } });
        progress("SENTINEL");
        return "x";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(JSON.stringify(done.events)).toContain("SENTINEL");
    expect(done.wires.join() + done.saved() + JSON.stringify(done.result.state)).not.toContain("SENTINEL");
  });

  test("10,000 synchronous tool updates are 10,000 events in order [S0.41, S2.41]", async () => {
    const returned = new Set<unknown>();
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { update }) => {
        for (let index = 0; index < 10_000; index++) returned.add(update?.({ content: `${index}` }));
        return "x";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(listEvents(done, "tool.update").map(({ partial }) => partial.content)).toEqual(
      Array.from({ length: 10_000 }, (_, index) => `${index}`),
    );
    expect([...returned]).toEqual([undefined]);
  });

  test("tool updates are emitted between start and end of their call, and updates after the return are dropped [S0.42, S2.42, T24]", async () => {
    let finishLate: () => void = () => undefined;
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { update, progress, emit }) => {
        update?.({ content: "in time" });
        finishLate = () => {
          update?.({ content: "late" });
          progress("late");
          emit("late", null);
        };
        return "x";
      },
    });
    const finishLateThenAnswer = (): readonly string[] => {
      finishLate();
      return ["ok"];
    };
    const loop = createToolLoop({ tools: [tool], turns: [[call("act")], finishLateThenAnswer] });
    await loop.start().result;
    finishLate();
    const mine = loop.events.filter((event) => "callId" in event || event.type === "custom").map(({ type }) => type);
    expect(mine).toEqual(["tool.started", "tool.body_started", "tool.update", "tool.completed"]);
    expect(JSON.stringify(loop.events)).not.toContain("late");
  });

  test("tool updates after a timeout are dropped [T24]", async () => {
    const world = createVirtualWorld();
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      effect: "pure",
      timeoutMs: 100,
      graceMs: 200,
      run: (_args, { update, signal }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => update?.({ content: "late" }));
          world.schedule.after(500, () => {
            update?.({ content: "later" });
            resolve("too late");
          });
        }),
    });
    const loop = createToolLoop({ tools: [tool], world, turns: [[call("act")], ["ok"]] });
    const end = loop.start().result;
    await world.advance(1_000);
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["Timed out after 100 ms"]);
    expect(listEvents(loop, "tool.update")).toEqual([]);
  });

  test("the update callback is undefined without a listener, so that no partial result is built [S0.45, S2.45]", async () => {
    let built = 0;
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { update }) => {
        if (update !== undefined) update({ content: `${++built}` });
        return "x";
      },
    });
    const deaf = await runToolLoop({ tools: [tool], deaf: true, turns: [[call("act")], ["ok"]] });
    expect([deaf.result.status, built]).toEqual(["done", 0]);
    await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(built).toBe(1);
  });

  test("the update callback may be used by any async work of the tool until the tool settles [S0.66, S2.72]", async () => {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: async (_args, { update }) => {
        const emitUpdates = async (name: string): Promise<void> => {
          for (let index = 0; index < 100; index++) {
            await Promise.resolve();
            update?.({ content: `${name}${index}` });
          }
        };
        await Promise.all([emitUpdates("a"), emitUpdates("b")]);
        return "x";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act", {}, "c1")], ["ok"]] });
    const updates = listEvents(done, "tool.update");
    expect([updates.length, new Set(updates.map(({ callId }) => callId))]).toEqual([200, new Set(["c1"])]);
    expect(done.events.findLastIndex(({ type }) => type === "tool.update")).toBeLessThan(
      done.events.findIndex(({ type }) => type === "tool.completed"),
    );
  });

  test("progress lines are emitted in order between start and end, and are ignored without a listener [S0.64, S2.70]", async () => {
    const world = createVirtualWorld();
    const tool = defineTool({
      name: "analyse",
      description: "Analyse.",
      input,
      run: async (_args, { progress }) => {
        progress("Starting analysis...");
        await new Promise<void>((resolve) => world.schedule.after(10, resolve));
        progress("Almost done...");
        return "x";
      },
    });
    for (const deaf of [false, true]) {
      const loop = createToolLoop({ tools: [tool], world, deaf, turns: [[call("analyse")], ["ok"]] });
      const end = loop.start().result;
      await world.advance(50);
      expect((await end).status).toBe("done");
      const shown = listEvents(loop, "tool.started", "tool.progress", "tool.completed").map((event) =>
        event.type === "tool.progress" ? event.text : event.type,
      );
      expect(shown).toEqual(deaf ? [] : ["tool.started", "Starting analysis...", "Almost done...", "tool.completed"]);
    }
  });

  test("a tool update is a snapshot of its value at the time of the call [T25]", async () => {
    const tool = defineTool({
      name: "search",
      description: "Search.",
      input,
      run: (_args, { update }) => {
        const files: string[] = [];
        for (const file of ["a", "b", "c"]) {
          files.push(file);
          update?.({ content: `Found ${files.length} files so far...`, details: { files } });
        }
        return "x";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("search")], ["ok"]] });
    expect(listEvents(done, "tool.update").map(({ partial }) => partial.details)).toEqual([
      { files: ["a"] },
      { files: ["a", "b"] },
      { files: ["a", "b", "c"] },
    ]);
  });

  test("a tool update that is no content is dropped and logged, and the tool continues", async () => {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { update }) => {
        update?.({ content: [{ type: "text" } as never] });
        return "fine";
      },
    });
    const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["fine"]);
    expect(done.world.lines.map(({ message }) => message)).toEqual(['an update of the tool "act" was withheld']);
  });

  test("a tool that reads rows updates at every hundredth row, and reads no row after a cancel", async () => {
    const read: number[] = [];
    const world = createVirtualWorld();
    const rows = defineTool({
      name: "rows",
      description: "Rows.",
      input: z.object({ total: z.int() }),
      effect: "pure",
      run: async ({ total }, { update, signal }) => {
        for (let row = 0; row < total; row++) {
          if (signal.aborted) throw new Error("stopped");
          if (row % 100 === 0)
            update?.({ content: `Processed ${row}/${total} rows`, details: { progress: row / total } });
          read.push(row);
          if (row === 250) await new Promise<void>((resolve) => world.schedule.after(10, resolve));
        }
        return `Processed all ${total} rows`;
      },
    });
    const whole = createToolLoop({ tools: [rows], world, turns: [[call("rows", { total: 400 })], ["ok"]] });
    const end = whole.start().result;
    await world.advance(20);
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["Processed all 400 rows"]);
    expect(listEvents(whole, "tool.update").map(({ partial }) => partial)).toEqual(
      [0, 100, 200, 300].map((row) => ({ content: `Processed ${row}/400 rows`, details: { progress: row / 400 } })),
    );
    read.length = 0;
    const stopped = createToolLoop({ tools: [rows], world, turns: [[call("rows", { total: 400 })], ["ok"]] });
    const handle = stopped.start();
    await world.advance(5);
    handle.cancel("enough");
    await world.advance(50);
    expect((await handle.result).status).toBe("cancelled");
    expect(read.at(-1)).toBe(250);
  });

  test("a tool that polls its signal stops within one iteration after a cancel [S0.10, S2.10]", async () => {
    const world = createVirtualWorld();
    const rounds: boolean[] = [];
    const tool = defineTool({
      name: "poll",
      description: "Poll.",
      input,
      effect: "pure",
      run: async (_args, { signal }) => {
        for (;;) {
          rounds.push(signal.aborted);
          if (signal.aborted) return "stopped";
          await new Promise<void>((resolve) => world.schedule.after(10, resolve));
        }
      },
    });
    const loop = createToolLoop({ tools: [tool], world, turns: [[call("poll")], ["ok"]] });
    const handle = loop.start();
    await world.advance(35);
    expect(rounds).toEqual([false, false, false, false]);
    handle.cancel();
    await world.advance(100);
    expect(rounds).toEqual([false, false, false, false, true]);
    expect((await handle.result).status).toBe("cancelled");
    expect(world.timers).toBe(0);
  });
});
