/** Invalid agents from untyped code: each is refused with one clear error before any model request. */
import {
  approval,
  defineMiddleware,
  defineState,
  defineTool,
  type Graph,
  getMessageText,
  isStatewrightError,
  type Message,
  type Middleware,
  memoryStore,
  run,
  toolRegistry,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createAgent, type TeamMember, team } from "../../src/index.ts";
import {
  allowTools,
  budget,
  confirmTools,
  guardUntrusted,
  limitCalls,
  logCalls,
  refuseUnclassified,
  stopLoops,
} from "../../src/middleware.ts";

const model = { id: "m", respond: () => Promise.reject(new Error("nobody asks it")) };

/** Untyped call of createAgent. */
function create(options: unknown): unknown {
  const loose: unknown = createAgent;
  if (typeof loose !== "function") throw new Error("createAgent is a function");
  return loose(options);
}

test.each<readonly [string, unknown, ...string[]]>([
  ["no options", undefined, "createAgent"],
  ["a number for a model", { name: "a", model: 7 }, "got 7", "a model"],
  ["no model", { name: "a" }, 'agent "a": `model` must be a model', "undefined"],
  ["an unknown option", { name: "a", model, tool: [] }, '"tool"', "tools"],
  [
    "names of other frameworks",
    { name: "a", model, system: "x", temperature: 0, maxSteps: 3 },
    'Write instructions instead of "system", settings: { temperature } instead of "temperature", maxTurns instead of "maxSteps".',
  ],
  [
    "a name of another framework and another unknown name",
    { name: "a", model, system: "x", foo: 1 },
    '"system", "foo"',
    "Use name, version",
  ],
  [
    "an agent among its tools",
    { name: "a", model, tools: [createAgent({ name: "b", model })] },
    'expected a tool, got the graph "b"',
    "agentTool",
  ],
  ["instructions that are a number", { name: "a", model, instructions: 7 }, "instructions"],
  ["a zod object for its state", { name: "a", model, state: z.object({}) }, "state", "defineState"],
  ["an unknown setting", { name: "a", model, settings: { temprature: 1 } }, '"temprature"'],
  ["a retry that is a number", { name: "a", model, retry: 3 }, "retry", "3"],
  [
    "middleware that is not a list",
    { name: "a", model, tools: [], middleware: { name: "audit" } },
    "middleware",
    "list",
  ],
  ["tools that are no list", { name: "a", model, tools: "search" }, "tools", "list"],
  [
    "questions of one key that differ",
    {
      name: "a",
      model,
      middleware: [
        { name: "one", interrupts: { sure: z.boolean() } },
        { name: "two", interrupts: { sure: z.string() } },
      ],
    },
    'agent "a": expected one interrupt under the key "sure", got different interrupts of middleware "one" and middleware "two"',
  ],
  ["a store that is a path", { name: "a", model, store: "agent.db" }, '"agent.db"', "sqliteStore"],
])("createAgent is refused with the fix: %s", (_name, options, ...says) => {
  let thrown: unknown;
  try {
    create(options);
  } catch (error) {
    thrown = error;
  }
  if (!isStatewrightError(thrown)) throw new Error(`not one of ours: ${String(thrown)}`);
  expect(["invalid_option", "invalid_tool"]).toContain(thrown.code);
  for (const said of says) expect(thrown.message).toContain(said);
  expect(thrown.message).toMatch(/\. [A-Z].+\. See node_modules\/statewright\/docs\/errors\.md#[a-z_]+\.$/s);
});

test("createAgent accepts valid options", () => {
  expect(createAgent({ name: "a", model, state: defineState({ n: z.number().default(0) }) }).name).toBe("a");
});

describe("tools with confirm: always", () => {
  const tool = (confirm: "always" | "policy") =>
    defineTool({
      name: "pay",
      description: "Pays.",
      input: z.object({}),
      safety: { access: "write", confirm },
      run: () => "paid",
    });
  const createAgentWith = (middleware: readonly Middleware[] | undefined, more: { readonly maxTurns?: number } = {}) =>
    createAgent({ name: "desk", model, tools: [tool("always")], ...(middleware && { middleware }), ...more });

  test.each([
    ["no middleware", undefined],
    ["an empty list of middleware", []],
    ["middleware that only observes", [logCalls({ log: () => undefined })]],
    ["middleware that counts calls", [limitCalls({ perRun: 3 }), stopLoops(), budget({ turns: 3 })]],
    ["middleware that refuses calls by rules", [allowTools(["pay"]), refuseUnclassified()]],
    ["middleware that refuses external content", [guardUntrusted({ action: "refuse" })]],
  ] as const)("a tool with confirm always is refused in an agent with %s", (_what, middleware) => {
    expect(() => createAgentWith(middleware, { maxTurns: 3 })).toThrow(
      /invalid_option: agent "desk": `middleware` must be .+ because the tool "pay" has confirm: "always", got no middleware.*Add confirmTools\(\)/s,
    );
  });

  test("a tool with confirm always is refused in an agent's registry without approving middleware", () => {
    expect(() => createAgent({ name: "desk", model, tools: toolRegistry([tool("always")]) })).toThrow(
      /invalid_option: agent "desk": .+ the tool "pay"/,
    );
  });

  const createPayTool = () => {
    const log: string[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      input: z.object({}),
      safety: { access: "write", confirm: "always" },
      run: () => log.push("paid"),
    });
    return { log, pay };
  };

  test("setTools refuses a tool with confirm always and leaves the tools unchanged", () => {
    const agent = createAgent({ name: "desk", model, tools: [tool("policy")] });
    expect(() => agent.setTools([tool("always")])).toThrow(/invalid_option: agent "desk": .+ the tool "pay"/);
    expect(agent.nodes.get("tools")?.tools?.registry.get("pay")?.spec.safety.confirm).toBe("policy");
  });

  test.each([
    ["an agent", (agent: TeamMember) => agent],
    ["a team", (agent: TeamMember) => team({ name: "office", agents: [agent] })],
  ])(
    "a tool with confirm always registered later is denied in %s before it runs, with the reason in the log",
    async (_what, within) => {
      const { log, pay } = createPayTool();
      const tools = toolRegistry();
      const logged: unknown[] = [];
      const scripted = scriptedModel([call("pay", {}), say("I could not.")]);
      const graph = within(createAgent({ name: "desk", model: scripted, tools }));
      tools.register(pay);
      const { state } = await run(graph as Graph, {
        input: { messages: [{ role: "user", id: "u", content: [{ type: "text", text: "Pay." }] }] },
        world: systemWorld({ log: (_level, message) => void logged.push(message) }),
      }).result;
      const { messages } = state as { readonly messages: readonly Message[] };
      const answer = messages.find(({ role }) => role === "tool");
      expect(answer && getMessageText(answer)).toBe(
        'The tool "pay" requires the approval of a person, and no approval is set up here, so this call was not run.',
      );
      expect(log).toEqual([]);
      expect(logged).toEqual([
        'the tool "pay" has confirm: "always", and its agent has no middleware that asks for approval',
      ]);
    },
  );

  test("a tool with confirm always registered later is interrupted for approval by the agent's middleware", async () => {
    const { log, pay } = createPayTool();
    const tools = toolRegistry();
    const scripted = scriptedModel([call("pay", {}), say("Paid.")]);
    const agent = createAgent({
      name: "desk",
      model: scripted,
      tools,
      middleware: [confirmTools()],
      store: memoryStore(),
    });
    tools.register(pay);
    expect(await agent.run({ thread: "t", input: "Pay." }).result).toMatchObject({ status: "waiting" });
    await agent.resume({ thread: "t", answers: { approve: true } }).result;
    expect(log).toEqual(["paid"]);
  });

  test("a tool with confirm always is refused when a beforeTool hook does not declare an interrupt", () => {
    const log = defineMiddleware({ name: "log", beforeTool: () => undefined });
    expect(() => createAgentWith([log])).toThrow("got no middleware that asks");
  });

  test("a tool with confirm always is accepted with approving middleware, and a tool with confirm policy always", () => {
    const own = defineMiddleware({ name: "own", interrupts: { approve: approval }, beforeTool: () => undefined });
    for (const middleware of [[confirmTools()], [own], [guardUntrusted({ action: "ask" })]])
      expect(createAgentWith(middleware).name).toBe("desk");
    expect(createAgent({ name: "desk", model, tools: [tool("policy")] }).name).toBe("desk");
  });
});

test.each([
  [{}, /agent "a": run expected an input, got undefined\. Pass run\(\{ input \}\)/],
  [undefined, /agent "a": run expected an input, got undefined/],
  [{ prompt: "Hello" }, /Rename "prompt" to input/],
  [{ messages: [] }, /Rename "messages" to input/],
])("a run without an input is refused with the expected option: %j", (options, said) => {
  const loose: unknown = createAgent({ name: "a", model }).run;
  if (typeof loose !== "function") throw new Error("run is a function");
  expect(() => loose(options)).toThrow(said);
});

test("defineTool with option names of other frameworks fails with the matching names", () => {
  const loose: unknown = defineTool;
  if (typeof loose !== "function") throw new Error("defineTool is a function");
  expect(() => loose({ name: "t", description: "T.", inputSchema: z.object({}), execute: () => 1 })).toThrow(
    'Write input instead of "inputSchema", run instead of "execute".',
  );
});
