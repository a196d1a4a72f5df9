/** Tools advertised per model turn, and calls of tools that were not advertised. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  decide,
  defineMiddleware,
  defineTool,
  type InvalidCallPolicy,
  isStatewrightError,
  type Middleware,
  memoryStore,
  toolRegistry,
} from "../../../src/index.ts";
import {
  call,
  createRawCall,
  createToolLoop,
  gate,
  getAnswerText,
  type Loop,
  type LoopOptions,
  listEvents,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";

function createCountingTool(name: string, ran: string[]) {
  return defineTool({
    name,
    description: "Does it.",
    input: z.object({}),
    effect: "pure",
    run: () => void ran.push(name),
  });
}

/** Middleware that advertises one tool per model turn. */
function turnByTurn(...turns: readonly (readonly string[])[]): Middleware {
  let turn = 0;
  return defineMiddleware({ name: "turns", selectTools: () => turns[turn++] });
}

function listShown(loop: Pick<Loop, "requests">): readonly (readonly string[])[] {
  return loop.requests.map(({ tools }) => tools.map(({ name }) => name));
}

test("the tools advertised to a model may differ between the turns of one run [S1.13]", async () => {
  const ran: string[] = [];
  const done = await runToolLoop({
    tools: [createCountingTool("search", ran), createCountingTool("order", ran)],
    policies: [turnByTurn(["search"], ["order", "search"], [])],
    turns: [[call("search")], [call("order")], ["ok"]],
  });
  expect(listShown(done)).toEqual([["search"], ["order", "search"], []]);
  expect(ran).toEqual(["search", "order"]);
});

test("a call is checked against the tools advertised in its turn: a call of another tool is rejected with an event and may be repaired [S1.6, S1.63]", async () => {
  const ran: string[] = [];
  const done = await runToolLoop({
    tools: [createCountingTool("search", ran), createCountingTool("order", ran)],
    policies: [turnByTurn(["search"], ["order"])],
    turns: [
      [call("order", {}, "a"), call("search", {}, "b")],
      [call("order", {}, "c"), call("search", {}, "d")],
      ["ok"],
    ],
  });
  expect(ran).toEqual(["search", "order"]);
  expect(listEvents(done, "tool.rejected").map(({ callId, reason }) => [callId, reason])).toEqual([
    ["a", "not_advertised"],
    ["d", "not_advertised"],
  ]);
  expect(listEvents(done, "tool.failed").map(({ callId, result }) => [callId, result.error?.kind])).toEqual([
    ["a", "denied"],
    ["d", "denied"],
  ]);
  expect(listEvents(done, "tool.started").map(({ callId }) => callId)).toEqual(["b", "c"]);
  expect(getAnswerText(listToolAnswers(done)[0])).toBe(
    'The tool "order" is not offered now, so this call was not run. Tools are "search".',
  );
  expect(listToolAnswers(done).map(({ callId }) => callId)).toEqual(["a", "b", "c", "d"]);
});

test("a policy by reason decides whether a call of an unadvertised tool is repaired or fails the run [S1.64]", async () => {
  const policies: readonly (readonly [InvalidCallPolicy, boolean])[] = [
    ["repair", false],
    [{}, false],
    [{ unknown: "fail", invalid_args: "fail" }, false],
    ["fail", true],
    [{ not_advertised: "fail" }, true],
  ];
  for (const [onInvalidCall, fails] of policies) {
    const loop = createToolLoop({
      tools: [createCountingTool("search", []), createCountingTool("order", [])],
      policies: [turnByTurn(["search"], ["search"])],
      onInvalidCall,
      turns: [[call("order")], ["ok"]],
    });
    const end = await loop.start().result.catch((error: unknown) => error);
    expect([onInvalidCall, isStatewrightError(end, "tool_failed")]).toEqual([onInvalidCall, fails]);
    expect(listEvents(loop, "tool.rejected").map(({ reason }) => reason)).toEqual(["not_advertised"]);
  }
});

describe("invalid tool calls", () => {
  const cases = {
    unknown: call("nothing"),
    invalid_args: call("search", { no: 1 }),
    not_advertised: call("order"),
  } as const;

  test("invalid tool calls are repaired by default with an event, count toward the limit of the run, and fail a run whose policy says so [D21]", async () => {
    for (const [reason, made] of Object.entries(cases)) {
      const ran: string[] = [];
      const options = (onInvalidCall?: LoopOptions["onInvalidCall"]): LoopOptions => ({
        tools: [createCountingTool("search", ran), createCountingTool("order", ran)],
        policies: [turnByTurn(...Array.from({ length: 50 }, () => ["search"]))],
        ...(onInvalidCall === undefined ? {} : { onInvalidCall }),
        maxSteps: 20,
        turns: Array.from({ length: 50 }, (_, turn) => [{ ...made, id: `c${turn}` }]),
      });
      const endless = createToolLoop(options());
      const end = await endless.start().result.catch((error: unknown) => error);
      expect([reason, isStatewrightError(end) && end.code]).toEqual([reason, "step_limit"]);
      expect(listEvents(endless, "tool.rejected").length).toBe(listEvents(endless, "tool.failed").length);
      expect(new Set(listEvents(endless, "tool.rejected").map((event) => event.reason))).toEqual(new Set([reason]));
      const strict = createToolLoop(options({ [reason]: "fail" }));
      const failed = await strict.start().result.catch((error: unknown) => error);
      expect([reason, isStatewrightError(failed) && failed.code]).toEqual([reason, "tool_failed"]);
      expect(strict.requests).toHaveLength(1);
      expect(ran).toEqual([]);
    }
  });

  test("a policy that forbids repair fails the run with a typed error, and the call is still answered in the stored transcript [S1.59]", async () => {
    for (const [reason, made] of Object.entries({ ...cases, malformed: createRawCall("search", '{"a":') })) {
      const store = memoryStore();
      const ran: string[] = [];
      const loop = createToolLoop({
        tools: [createCountingTool("search", ran), createCountingTool("order", ran)],
        policies: [turnByTurn(["search"], ["search"], ["search"])],
        onInvalidCall: "fail",
        store,
        turns: [[call("search", {}, "fine"), { ...made, id: "bad" }], ["I see"]],
      });
      const error = await loop.start().result.catch((thrown: unknown) => thrown);
      expect([reason, isStatewrightError(error) && [error.code, error.kind]]).toEqual([
        reason,
        ["tool_failed", "tool"],
      ]);
      expect((await store.runs({ thread: "t" })).map(({ status, error }) => [status, error?.code])).toEqual([
        ["failed", "tool_failed"],
      ]);
      const done = await loop.again().result;
      expect(listToolAnswers(done).map(({ callId, isError }) => [callId, isError])).toEqual([
        ["fine", false],
        ["bad", true],
      ]);
      expect([loop.requests.length, ran]).toEqual([2, ["search"]]);
    }
  });
});

describe("advertised tools of a message", () => {
  test("a tool removed or replaced while its call waits is still the advertised tool, and a newly added tool is not advertised [T51]", async () => {
    const log: string[] = [];
    const tool = (name: string, mark: string) =>
      defineTool({ name, description: "Does it.", input: z.object({}), run: () => void log.push(`${name} ${mark}`) });
    const registry = toolRegistry([tool("kept", "old"), tool("gone", "old"), tool("other", "old")]);
    const done = await runToolLoop({
      tools: registry,
      policies: [
        defineMiddleware({
          name: "meddles",
          afterModel: () => {
            registry.replaceAll([tool("kept", "new"), tool("added", "new")]);
            return undefined;
          },
        }),
      ],
      turns: [
        [call("kept", {}, "a"), call("gone", {}, "b"), call("added", {}, "c")],
        [call("kept", {}, "d"), call("gone", {}, "e"), call("added", {}, "f")],
        ["ok"],
      ],
    });
    expect(log).toEqual(["kept old", "gone old", "kept new", "added new"]);
    expect(listEvents(done, "tool.rejected").map(({ callId, reason }) => [callId, reason])).toEqual([
      ["c", "not_advertised"],
      ["e", "unknown"],
    ]);
    expect(listShown(done)).toEqual([
      ["gone", "kept", "other"],
      ["added", "kept"],
      ["added", "kept"],
    ]);
  });

  test("a tool replaced after the definition of its graph is the tool that is approved and run", async () => {
    const tool = (mark: string) =>
      defineTool({ name: "act", description: `Acts, ${mark}.`, input: z.object({}), effect: "pure", run: () => mark });
    const registry = toolRegistry([tool("old")]);
    const loop = createToolLoop({
      tools: registry,
      middleware: [
        defineMiddleware({ name: "asks", beforeTool: ({ call: made }) => decide.interrupt(made, "may it?") }),
      ],
      turns: [[call("act", {}, "a")], ["ok"]],
    });
    registry.replace(tool("new"));
    expect((await loop.start().result).status).toBe("waiting");
    expect(loop.requests[0]?.tools.map(({ description }) => description)).toEqual(["Acts, new."]);
    const end = await loop.again({ approve: true }).result;
    expect([end.status, listToolAnswers(end).map(getAnswerText)]).toEqual(["done", ["new"]]);
  });

  test("advertised tools are stored with the message and known after a crash, and appear in no request [T51]", async () => {
    const ran: string[] = [];
    const tools = [createCountingTool("search", ran), createCountingTool("order", ran)];
    const store = memoryStore();
    const turns = [[call("search", {}, "a"), call("order", {}, "b")], ["ok"]] as const;
    const stopped = createToolLoop({
      tools,
      store,
      policies: [
        turnByTurn(["search"]),
        defineMiddleware({
          name: "stops",
          required: true,
          afterTool: () => {
            throw new Error("the process ends here");
          },
        }),
      ],
      turns,
    });
    await stopped.start().result.catch((error: unknown) => error);
    expect(ran).toEqual(["search"]);
    const later = createToolLoop({ tools, store, policies: [turnByTurn(["order", "search"])], turns });
    const done = await later.again().result;
    expect(ran).toEqual(["search", "search"]);
    expect(listEvents(later, "tool.rejected").map(({ callId, reason }) => [callId, reason])).toEqual([
      ["b", "not_advertised"],
    ]);
    expect(done.state.messages.flatMap((message) => (message.role === "assistant" ? [message.offered] : []))).toEqual([
      ["search"],
      undefined,
    ]);
    for (const wire of [...stopped.wires, ...later.wires]) expect(wire).not.toContain('"offered"');
  });

  test("a request without a tool list allows every registered tool, and a request with all tools hidden allows none", async () => {
    const ran: string[] = [];
    const registry = toolRegistry([createCountingTool("search", ran)]);
    const silent = { ...registry, forModel: () => [] };
    const turns = [[call("search")], ["ok"]];
    await runToolLoop({ tools: silent, turns });
    expect(ran).toEqual(["search"]);
    const hidden = await runToolLoop({ tools: registry, policies: [turnByTurn([])], turns });
    expect(ran).toEqual(["search"]);
    expect(getAnswerText(listToolAnswers(hidden)[0])).toContain("There are no tools.");
  });

  test("a message whose model was shown all tools stores no advertised tools", async () => {
    const done = await runToolLoop({ tools: [createCountingTool("search", [])], turns: [[call("search")], ["ok"]] });
    expect(JSON.stringify(done.result.state.messages)).not.toContain("offered");
  });
});

test("a changed tool set applies from the next request, and active tool calls complete [S4.25]", async () => {
  const working = gate();
  const slow = defineTool({
    name: "slow",
    description: "Slow.",
    input: z.object({}),
    run: async () => {
      await working.passed;
      return "finished";
    },
  });
  const quick = createCountingTool("quick", []);
  const registry = toolRegistry([slow]);
  const loop = createToolLoop({ tools: registry, turns: [[call("slow")], [call("quick")], ["ok"]] });
  const run = loop.start();
  run.on((event) => {
    if (event.type !== "tool.started" || event.tool !== "slow") return;
    registry.replaceAll([quick]);
    working.open();
  });
  const done = await run.result;
  expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([false, false]);
  expect(getAnswerText(listToolAnswers(done)[0])).toBe("finished");
  expect(listShown(loop)).toEqual([["slow"], ["quick"], ["quick"]]);
});

describe("selectTools", () => {
  test("selectTools cannot show a tool that other middleware has hidden, and returning undefined changes nothing", async () => {
    const done = await runToolLoop({
      tools: [createCountingTool("a", []), createCountingTool("b", []), createCountingTool("c", [])],
      policies: [
        defineMiddleware({ name: "hides", selectTools: () => ["b", "a"] }),
        defineMiddleware({ name: "nothing", selectTools: () => undefined }),
        defineMiddleware({ name: "shows", selectTools: (names) => [...names, "c", "b"] }),
      ],
      turns: [["ok"]],
    });
    expect(listShown(done)).toEqual([["a", "b"]]);
  });

  test("selectTools with an unknown name fails with the known names, and a throw names the middleware [D10]", async () => {
    const wrong: readonly (readonly [Middleware["selectTools"], string])[] = [
      [() => ["a", "nothing"], '["a","b"]'],
      [() => "a" as never, "a list of names"],
      [
        () => {
          throw new Error("not now");
        },
        "not now",
      ],
    ];
    for (const [selectTools, said] of wrong) {
      const loop = createToolLoop({
        tools: [createCountingTool("a", []), createCountingTool("b", [])],
        policies: [defineMiddleware({ name: "picks", ...(selectTools && { selectTools }) })],
        turns: [["ok"]],
      });
      const error = await loop.start().result.catch((thrown: unknown) => thrown);
      expect(String(error)).toContain('"picks"');
      expect(String(error)).toContain(said);
      expect(loop.requests).toEqual([]);
    }
    expect(() => toolRegistry([createCountingTool("a", [])]).forModel(["a", "nothing"])).toThrow(
      /unknown tool "nothing".+Use "a"/,
    );
  });
});

test("every tool call has one end event, and one start event when started, also when refused [S1.8]", async () => {
  const fails = defineTool({
    name: "fails",
    description: "Fails.",
    input: z.object({}),
    run: () => {
      throw new Error("no");
    },
  });
  const done = await runToolLoop({
    tools: [createCountingTool("search", []), fails, createCountingTool("hidden", [])],
    policies: [turnByTurn(["search", "fails"])],
    turns: [
      [
        call("search", {}, "a"),
        call("fails", {}, "b"),
        call("search", { no: 1 }, "c"),
        call("nothing", {}, "d"),
        call("hidden", {}, "e"),
      ],
      ["ok"],
    ],
  });
  const recorded = ["a", "b", "c", "d", "e"].map((id) => [
    id,
    listEvents(done, "tool.started", "tool.rejected", "tool.completed", "tool.failed").flatMap(({ type, callId }) =>
      callId === id ? [type] : [],
    ),
  ]);
  expect(recorded).toEqual([
    ["a", ["tool.started", "tool.completed"]],
    ["b", ["tool.started", "tool.failed"]],
    ["c", ["tool.rejected", "tool.failed"]],
    ["d", ["tool.rejected", "tool.failed"]],
    ["e", ["tool.rejected", "tool.failed"]],
  ]);
});

test("denied, unknown, invalid, hidden and skipped tool calls have one end event and pass the after hooks [T10, S0.60, S2.60]", async () => {
  const seen: string[] = [];
  const started = gate();
  const go = gate();
  const slow = defineTool({
    name: "slow",
    description: "Slow.",
    input: z.object({}),
    run: async () => {
      started.open();
      await go.passed;
      return "done";
    },
  });
  const loop = createToolLoop({
    tools: [slow, createCountingTool("search", []), createCountingTool("denied", []), createCountingTool("hidden", [])],
    strategy: "sequential",
    policies: [turnByTurn(["slow", "search", "denied"])],
    middleware: [
      defineMiddleware({
        name: "audit",
        beforeTool: ({ call: made }) => (made.name === "denied" ? { action: "deny", reason: "no" } : undefined),
        afterTool: ({ call: made, result }) => {
          seen.push(`${made.id} ${result.error?.kind ?? "ok"}`);
          return undefined;
        },
      }),
    ],
    turns: [
      [
        call("denied", {}, "a"),
        call("nothing", {}, "b"),
        call("search", { no: 1 }, "c"),
        call("hidden", {}, "d"),
        call("slow", {}, "e"),
        call("search", {}, "f"),
      ],
      ["ok"],
    ],
  });
  const run = loop.start();
  await started.passed;
  await run.steer("Stop that, please.");
  go.open();
  const result = await run.result;
  const kinds = ["a denied", "b not_found", "c invalid_args", "d denied", "e ok", "f skipped"];
  expect(seen).toEqual(kinds);
  const ends = listEvents(loop, "tool.completed", "tool.failed");
  expect(ends.map(({ callId, result: end }) => `${callId} ${end.error?.kind ?? "ok"}`)).toEqual(kinds);
  expect(listToolAnswers(result).map(({ callId }) => callId)).toEqual(["a", "b", "c", "d", "e", "f"]);
});
