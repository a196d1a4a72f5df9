/** Structured output of an agent: requested natively or by a final call, repaired by the model, kept over crashes. */
import {
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  getMessageText,
  isStatewrightError,
  type Message,
  type Model,
  type ModelReply,
  memoryStore,
  run,
  START,
  StatewrightError,
  subgraph,
  type ToolRegistry,
  toolRegistry,
} from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";
import {
  call,
  failWith,
  rejectInvalidTranscripts,
  type ScriptedEntry,
  type ScriptedModel,
  say,
  scriptedModel,
} from "@statewright/testing";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createAgent } from "../../src/index.ts";
import { inputGuardrail, trimMessages } from "../../src/middleware.ts";

const Order = z.object({ item: z.string(), count: z.int().positive() });

/** Model whose provider enforces the schema. */
function native(script: readonly ScriptedEntry[]): ScriptedModel {
  return { ...scriptedModel(script), structuredOutput: true };
}

const final = (item: string, count: number) => call("final_answer", { item, count });
const roles = (messages: readonly Message[]) => messages.map(({ role }) => role);
const order = { item: "lamp", count: 2 };

const described = { description: "Takes its name.", input: z.object({}), run: () => "" };
const look = defineTool({
  name: "look",
  description: "Looks something up.",
  input: z.object({ word: z.string() }),
  effect: "pure",
  run: ({ word }) => {
    if (word === "nothing") throw new Error("there is no such word");
    return `${word} is there`;
  },
});

describe("structured output", () => {
  test("an agent with an output requests native output from a model that supports schemas and returns the typed output", async () => {
    const model = native([say('{"item":"lamp","count":2}')]);
    const agent = createAgent({ name: "clerk", model, output: Order });
    const result = await agent.run({ input: "Two lamps." }).result;
    expectTypeOf(result.output).toEqualTypeOf<{ item: string; count: number } | undefined>();
    expect(result).toMatchObject({ output: order, ended: { by: "answer" } });
    expect(model.requests[0]?.tools).toEqual([]);
    expect(model.requests[0]?.output?.schema).toMatchObject({
      type: "object",
      required: ["item", "count"],
      additionalProperties: false,
    });
  });

  test("an agent with an output uses a required final call for other models, and its answer ends the agent", async () => {
    const model = scriptedModel([final("lamp", 2)]);
    const agent = createAgent({ name: "clerk", model, output: Order });
    const result = await agent.run({ input: "Two lamps." }).result;
    expect(result).toMatchObject({ status: "done", output: order, ended: { by: "answer" } });
    expect(roles(result.state.messages)).toEqual(["user", "assistant", "tool"]);
    expect(model.requests[0]).toMatchObject({ toolChoice: "required", tools: [{ name: "final_answer" }] });
    expect(model.requests[0]?.output).toBeUndefined();
  });

  test("an output may set its strategy, name and description", async () => {
    const keeps = native([final("lamp", 2)]);
    const byTool = createAgent({
      name: "clerk",
      model: keeps,
      output: { schema: Order, strategy: "tool", description: "The order of the customer." },
    });
    expect(await byTool.run({ input: "Two." }).result).toMatchObject({ output: order });
    expect(keeps.requests[0]?.tools[0]?.description).toContain("The order of the customer.");
    const plain = scriptedModel([say('```json\n{"item":"lamp","count":2}\n```')]);
    const natively = createAgent({
      name: "clerk",
      model: plain,
      output: { schema: Order, strategy: "native", name: "order" },
    });
    expect(await natively.run({ input: "Two." }).result).toMatchObject({ output: order });
    expect(plain.requests[0]?.output).toMatchObject({ name: "order" });
  });

  test("a fallback model without schema support is asked for the output by a final call", async () => {
    const busy = new StatewrightError("model_failed", { what: "busy", next: "Wait", details: { retryable: false } });
    const other = scriptedModel([final("lamp", 2)], { id: "other" });
    const agent = createAgent({
      name: "clerk",
      model: native([failWith(busy)]),
      fallback: [other],
      retry: { attempts: 1 },
      output: Order,
    });
    expect(await agent.run({ input: "Two." }).result).toMatchObject({ output: order });
    expect(other.requests[0]?.tools.map(({ name }) => name)).toEqual(["final_answer"]);
  });

  test("an output is the transformed value of its schema, not the text of the model", async () => {
    const output = z.object({ at: z.string().transform((text) => new Date(text)) });
    const agent = createAgent({ name: "clerk", model: native([say('{"at":"2026-01-02"}')]), output });
    const result = await agent.run({ input: "When?" }).result;
    expect(result.status === "done" && result.output?.at.getFullYear()).toBe(2026);
  });

  test.each([
    ["a list", z.array(Order), { value: [order] }, [order]],
    ["a choice", z.enum(["yes", "no"]), { value: "yes" }, "yes"],
    [
      "a union",
      z.discriminatedUnion("kind", [z.object({ kind: z.literal("a") }), z.object({ kind: z.literal("b") })]),
      { value: { kind: "b" } },
      { kind: "b" },
    ],
  ] as const)("an output that is %s is requested inside an object", async (_what, output, said, expected) => {
    const model = native([say(JSON.stringify(said))]);
    const agent = createAgent({ name: "clerk", model, output: output as z.ZodType<unknown> });
    expect(await agent.run({ input: "Go" }).result).toMatchObject({ output: expected });
    expect(model.requests[0]?.output?.schema).toMatchObject({ type: "object", required: ["value"] });
  });

  test("an output schema may be recursive, at the top level and inside a wrapper object", async () => {
    type Tree = { readonly name: string; readonly parts: readonly Tree[] };
    const Tree: z.ZodType<Tree> = z.object({
      name: z.string(),
      get parts() {
        return z.array(Tree);
      },
    });
    const tree = { name: "a", parts: [{ name: "b", parts: [] }] };
    const one = createAgent({ name: "clerk", model: native([say(JSON.stringify(tree))]), output: Tree });
    expect(await one.run({ input: "Go" }).result).toMatchObject({ output: tree });
    const model = native([say(JSON.stringify({ value: [tree] }))]);
    const several = createAgent({ name: "clerk", model, output: z.array(Tree) });
    expect(await several.run({ input: "Go" }).result).toMatchObject({ output: [tree] });
    const schema = JSON.stringify(model.requests[0]?.output?.schema);
    for (const [, path] of schema.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const found = path
        ?.split("/")
        .reduce((at: unknown, part) => (at as Record<string, unknown>)[part], JSON.parse(schema));
      expect(found).toMatchObject({ type: "object" });
    }
    expect(schema).toContain("$ref");
  });

  test("an output may be described by a JSON Schema", async () => {
    const output = jsonSchemaInput<{ readonly ok: boolean }>({
      type: "object",
      properties: { ok: { type: "boolean" } },
      required: ["ok"],
    });
    const agent = createAgent({ name: "clerk", model: native([say('{"ok":1}'), say('{"ok":true}')]), output });
    const result = await agent.run({ input: "Go" }).result;
    if (result.status !== "done") throw new Error(result.status);
    expectTypeOf(result.output).toEqualTypeOf<{ readonly ok: boolean } | undefined>();
    expect(result.output).toEqual({ ok: true });
  });

  test.each([
    ["an invalid schema", { type: "object" }, /output/],
    ["a schema that JSON Schema cannot express", z.object({ at: z.date() }), /JSON Schema cannot represent/],
    ["an unknown strategy", { schema: Order, strategy: "json" }, /strategy.+"native" or "tool"/],
    ["repairs below 0", { schema: Order, repairs: -1 }, /repairs/],
  ])("an agent output with %s is refused at creation", (_what, output, says) => {
    expect(() => createAgent({ name: "clerk", model: scriptedModel([]), output: output as typeof Order })).toThrow(
      says,
    );
  });

  test("a tool with the name of the final call is refused in an agent with an output", () => {
    const taken = defineTool({ ...described, name: "final_answer" });
    expect(() => createAgent({ name: "clerk", model: scriptedModel([]), tools: [taken], output: Order })).toThrow(
      /final_answer/,
    );
  });

  test("a provider alias equal to the name of the final call is refused, whenever the alias is registered", () => {
    const createAgentWith = (registry: ToolRegistry) =>
      createAgent({ name: "clerk", model: scriptedModel([]), tools: registry, output: Order });
    const before = toolRegistry([look]).alias("acme", "look", "final_answer");
    const says = 'invalid_tool: for models of "acme" the tool "look" has the name "final_answer"';
    expect(() => createAgentWith(before)).toThrow(says);
    const after = toolRegistry([look]);
    createAgentWith(after);
    expect(() => after.alias("acme", "look", "final_answer")).toThrow(says);
    const named = defineTool({ ...described, name: "final_answer" });
    for (const add of [() => after.register(named), () => after.replace(named), () => after.replaceAll([look, named])])
      expect(add).toThrow('invalid_tool: a tool has the name "final_answer"');
    expect(after.names()).toEqual(["look"]);
  });

  test("an agent with an output that ends by a tool has no output, and its result states the end", async () => {
    const submit = defineTool({
      name: "submit",
      description: "Ends the work.",
      input: z.object({}),
      run: () => ({ content: "in", terminate: true }),
    });
    const agent = createAgent({
      name: "clerk",
      model: scriptedModel([call("submit", {})]),
      tools: [submit],
      output: Order,
    });
    expect(await agent.run({ input: "Go" }).result).toMatchObject({ output: undefined, ended: { by: "tool" } });
  });
});

describe("output with tools", () => {
  const addTools = (script: readonly ScriptedEntry[], more: { readonly native?: boolean } = {}) => {
    const model = { ...scriptedModel(script), ...(more.native && { structuredOutput: true }) };
    return { model, agent: createAgent({ name: "clerk", model, tools: [look], output: Order }) };
  };

  test.each([
    ["natively", true, say('{"item":"lamp","count":2}')],
    ["by a final call", false, final("lamp", 2)],
  ] as const)("an output is returned %s after the tool calls that precede it", async (_how, keeps, answer) => {
    const { model, agent } = addTools([call("look", { word: "lamp" }), answer], { native: keeps });
    expect(await agent.run({ input: "Two lamps." }).result).toMatchObject({ output: order });
    expect(model.requests).toHaveLength(2);
    expect(model.requests[0]?.tools.some(({ name }) => name === "look")).toBe(true);
  });

  test("tool calls next to a final call run first, each is answered in place, and the agent ends", async () => {
    const { model, agent } = addTools([[final("lamp", 2), call("look", { word: "lamp" })]]);
    const { state, ...result } = await agent.run({ input: "Two lamps." }).result;
    expect(result).toMatchObject({ status: "done", output: order });
    expect(state.messages.slice(2).map(getMessageText)).toEqual(["Given.", "lamp is there"]);
    expect(model.requests).toHaveLength(1);
  });

  test("a final call is rejected when another call of its message failed", async () => {
    const { model, agent } = addTools([[call("look", { word: "nothing" }), final("lamp", 2)], final("lamp", 1)]);
    const { state, ...result } = await agent.run({ input: "Two lamps." }).result;
    expect(result).toMatchObject({ output: { item: "lamp", count: 1 } });
    expect(getMessageText(state.messages[3] as Message)).toMatch(
      /^Not accepted: another call of the same message failed/,
    );
    expect(model.requests).toHaveLength(2);
  });

  test("of two final calls in one message the first counts", async () => {
    const { agent } = addTools([[final("lamp", 2), final("lamp", 3)]]);
    const { state, ...result } = await agent.run({ input: "Two lamps." }).result;
    expect(result).toMatchObject({ output: order });
    expect(state.messages.slice(2).map(getMessageText)).toEqual([
      "Given.",
      "Not accepted: an answer was already given in this message. Call it again.",
    ]);
  });

  test("the final call is advertised whatever tools are allowed, and tool policies do not refuse it", async () => {
    const model = scriptedModel([final("lamp", 2)]);
    const agent = createAgent({
      name: "clerk",
      model,
      tools: [look],
      allowedTools: [],
      output: Order,
      middleware: [
        {
          name: "refuse all",
          selectTools: () => [],
          beforeTool: () => ({ action: "deny", reason: "no tool is allowed" }),
        },
      ],
    });
    expect(await agent.run({ input: "Two lamps." }).result).toMatchObject({ output: order });
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["final_answer"]);
  });

  test("a truncated message returns no output", async () => {
    const replies: ModelReply[] = [
      {
        finish: "length",
        content: [{ type: "call", id: "c1", name: "final_answer", args: { item: "lamp", count: 2 } }],
      },
      {
        finish: "calls",
        content: [{ type: "call", id: "c2", name: "final_answer", args: { item: "lamp", count: 3 } }],
      },
    ];
    const model: Model = { id: "cut", respond: async () => replies.shift() as ModelReply };
    const agent = createAgent({ name: "clerk", model: rejectInvalidTranscripts(model), output: Order });
    const { state, ...result } = await agent.run({ input: "Go" }).result;
    expect(result).toMatchObject({ output: { count: 3 } });
    expect(getMessageText(state.messages[2] as Message)).toMatch(/cut off/);
  });
});

describe("invalid output", () => {
  test.each([
    [
      "natively",
      true,
      [say('{"item":"lamp"}'), say("no JSON"), say('{"item":"lamp","count":2}')],
      ["Your answer does not fit its schema: count:", "Your answer does not fit its schema: it is not valid JSON"],
    ],
    [
      "by a final call",
      false,
      [call("final_answer", { item: "lamp" }), say("Two lamps."), final("lamp", 2)],
      [
        "Not accepted: count:",
        "Your answer does not fit its schema: it is not valid JSON. Give your answer by calling final_answer.",
      ],
    ],
  ] as const)(
    "an output that does not fit is returned to the model with the error, %s",
    async (_how, keeps, script, said) => {
      const model = keeps ? native(script) : scriptedModel(script);
      const agent = createAgent({ name: "clerk", model, output: Order });
      const { state, ...result } = await agent.run({ input: "Two lamps." }).result;
      expect(result).toMatchObject({ status: "done", output: order });
      expect(model.requests).toHaveLength(3);
      const answers = state.messages.filter(({ role }) => role !== "assistant").slice(1);
      for (const [index, begins] of said.entries()) expect(getMessageText(answers[index] as Message)).toContain(begins);
    },
  );

  test("a run without repairs left fails with the last text, keeps its messages, and each resume allows one more try", async () => {
    const store = memoryStore();
    const model = native([say("one"), say("two"), say("three"), say("four"), say('{"item":"lamp","count":2}')]);
    const agent = createAgent({ name: "clerk", model, output: { schema: Order, repairs: 2 }, store });
    const error = await agent.run({ thread: "t", input: "Go" }).result.catch((thrown: unknown) => thrown);
    if (!(error instanceof StatewrightError)) throw error;
    expect(error).toMatchObject({ code: "invalid_output", details: { text: "three" } });
    expect(error.message).toMatch(/got 3 invalid outputs/);
    expect(model.requests).toHaveLength(3);
    const again = await agent.resume({ thread: "t" }).result.catch((thrown: unknown) => thrown);
    expect(again).toMatchObject({ code: "invalid_output", details: { text: "four" } });
    const { state, ...result } = await agent.resume({ thread: "t" }).result;
    expect(result).toMatchObject({ status: "done", output: order });
    expect(state.messages.filter(({ role }) => role === "assistant").map(getMessageText)).toEqual([
      "one",
      "two",
      "three",
      "four",
      '{"item":"lamp","count":2}',
    ]);
  });

  test("a resume after an invalid output continues with further tool calls and gives no hint about tools that were all advertised", async () => {
    const store = memoryStore();
    const model = scriptedModel([
      call("final_answer", { item: "lamp" }),
      call("look", { word: "lamp" }),
      call("look", { word: "two" }),
      final("lamp", 2),
    ]);
    const agent = createAgent({ name: "clerk", model, tools: [look], output: { schema: Order, repairs: 0 }, store });
    await expect(agent.run({ thread: "t", input: "Go" }).result).rejects.toThrow("got 1 invalid outputs");
    const { state, status, output } = await agent.resume({ thread: "t" }).result;
    expect({ status, output }).toEqual({ status: "done", output: order });
    expect(model.requests).toHaveLength(4);
    expect(state.messages.filter((message) => "offered" in message)).toEqual([]);
  });

  test("an output with repairs 0 fails at the first invalid answer", async () => {
    const model = scriptedModel([call("final_answer", { item: "lamp" })]);
    const agent = createAgent({ name: "clerk", model, output: { schema: Order, repairs: 0 } });
    const error = await agent.run({ input: "Go" }).result.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "invalid_output", details: { text: '{"item":"lamp"}' } });
    expect(model.requests).toHaveLength(1);
  });

  test("the repair count of an output restarts with each user message", async () => {
    const store = memoryStore();
    const model = native([say("one"), say('{"item":"lamp","count":2}'), say("two"), say('{"item":"sofa","count":1}')]);
    const agent = createAgent({ name: "clerk", model, output: { schema: Order, repairs: 1 }, store });
    await agent.run({ thread: "t", input: "Lamps." }).result;
    expect(await agent.run({ thread: "t", input: "A sofa." }).result).toMatchObject({ output: { item: "sofa" } });
  });
});

describe("output of a thread", () => {
  test("a resume of a finished thread returns the output again, and the output survives a crash before the end", async () => {
    const store = memoryStore();
    const model = scriptedModel([call("look", { word: "lamp" }), final("lamp", 2)]);
    let isFirst = true;
    const dying = defineTool({
      name: "look",
      description: "Looks something up.",
      input: z.object({ word: z.string() }),
      effect: "pure",
      run: () => {
        if (!isFirst) return "there";
        isFirst = false;
        store.crash();
        return new Promise<string>(() => undefined);
      },
    });
    const agent = createAgent({ name: "clerk", model, tools: [dying], output: Order });
    const peer = store.peer();
    const dead = agent.run({ thread: "t", input: "Two lamps.", store });
    dead.result.catch(() => "it is dead");
    await dead.events().next();
    while (isFirst) await Promise.resolve();
    const result = await agent.resume({ thread: "t", store: peer }).result;
    expect(result).toMatchObject({ status: "done", output: order, ended: { by: "answer" } });
    expect(await agent.resume({ thread: "t", store: peer }).result).toMatchObject({ output: order });
    expect(model.requests).toHaveLength(2);
  });

  test("an output returned under another agent version, with active end hooks, still fits after a resume", async () => {
    const store = memoryStore();
    const peer = store.peer();
    let isFirst = true;
    let rejectReply: () => void = () => undefined;
    const dead = new Promise<void>((resolve) => {
      rejectReply = resolve;
    });
    const small: Model = {
      id: "small",
      respond: async () => {
        if (!isFirst) return { content: [{ type: "text", text: "noted" }], finish: "stop" };
        isFirst = false;
        // Started effects are written at the end of the event loop turn.
        await new Promise((resolve) => setImmediate(resolve));
        store.crash();
        rejectReply();
        return new Promise(() => undefined);
      },
    };
    const notes = defineMiddleware({
      name: "notes",
      afterAgent: async ({ messages }, { ask }) => {
        await ask("notes", { model: small, request: { messages: messages.slice(0, 1), tools: [] } });
      },
    });
    const createClerk = (version: number) =>
      createAgent({
        name: "clerk",
        version,
        model: scriptedModel([final("lamp", 2)]),
        output: Order,
        middleware: [notes],
      });
    createClerk(1)
      .run({ thread: "t", input: "Two lamps.", store })
      .result.catch(() => "it is dead");
    await dead;
    const head = await peer.head("t", "main");
    const recorded = await peer.effects("t", "main", head?.step ?? 0);
    expect(recorded.map(({ key }) => key)).toEqual(["tools:afterAgent", "tools:afterAgent:notes:notes"]);
    const result = await createClerk(2).resume({ thread: "t", store: peer }).result;
    expect(result).toMatchObject({ status: "done", output: order, ended: { by: "answer" } });
  });

  test("the output of an inner agent is passed to its outer graph", async () => {
    const clerk = createAgent({ name: "clerk", model: scriptedModel([final("lamp", 2)]), output: Order });
    const desk = defineGraph({ name: "desk", state: defineState({ words: z.string(), count: z.number().default(0) }) })
      .nodes({
        clerk: subgraph(clerk, {
          input: (state) => clerk.toInput(state.words),
          output: (given) => {
            expectTypeOf(given).toEqualTypeOf<{ item: string; count: number } | undefined>();
            return { count: given?.count ?? 0 };
          },
        }),
      })
      .edges({ [START]: "clerk", clerk: END });
    const { state } = await run(desk, { input: { words: "Two lamps." } }).result;
    expect(state.count).toBe(2);
  });

  test("the arguments of a final call are streamed as call deltas", async () => {
    const byCall = createAgent({ name: "clerk", model: scriptedModel([final("lamp", 2)]), output: Order });
    let args = "";
    for await (const event of byCall.stream({ input: "Go" }))
      if (event.type === "message.call_delta" && event.tool === "final_answer") args += event.argsText;
    expect(JSON.parse(args)).toEqual(order);
  });
});

describe("output text", () => {
  const spaced = '{ "item": "lamp", "count": 2 }';
  /** Streams the arguments as a model may write them, with other white space than in the message. */
  const calling: Model = {
    id: "m",
    respond: async (_, { delta }) => {
      for (const argsText of [spaced.slice(0, 9), spaced.slice(9)])
        delta?.({ type: "call", id: "c", name: "final_answer", argsText });
      return { content: [{ type: "call", id: "c", name: "final_answer", args: order }], finish: "calls" };
    },
  };

  async function streamAnswer(model: Model): Promise<readonly [string, string | undefined]> {
    const agent = createAgent({ name: "clerk", model, output: Order, tools: [look] });
    const run = agent.run({ input: "Go" });
    let text = "";
    for await (const piece of run.text()) text += piece;
    return [text, (await run.result).text];
  }

  test.each([
    ["natively", native([say(spaced)]), [spaced, spaced]],
    ["by a final call", calling, [spaced, '{"item":"lamp","count":2}']],
    [
      "by a final call after text, and again after an invalid one",
      scriptedModel([[say("I give it."), final("lamp", 0)], final("lamp", 2)]),
      ['I give it.\n{"item":"lamp","count":0}\n{"item":"lamp","count":2}', '{"item":"lamp","count":2}'],
    ],
    [
      "after the text of another message",
      native([[say("I look it up."), call("look", { word: "lamp" })], say(spaced)]),
      [`I look it up.\n${spaced}`, spaced],
    ],
  ])("the text of an output is JSON in the stream and in the result, requested %s", async (_, model, expected) => {
    expect(await streamAnswer(model)).toEqual(expected);
  });

  test("an output changed by a hook retracts its streamed text and is emitted complete", async () => {
    const model = scriptedModel([final("lamp", 2)]);
    const doubling = defineMiddleware({
      name: "doubling",
      afterModel: (reply) => ({
        ...reply,
        content: reply.content.map((block) =>
          block.type === "call" ? { ...block, args: { ...order, count: 4 } } : block,
        ),
      }),
    });
    const run = createAgent({ name: "clerk", model, output: Order, middleware: [doubling] }).run({ input: "Go" });
    const pieces: string[] = [];
    for await (const piece of run.text({ formatRetracted: (text) => `<${text}>` })) pieces.push(piece);
    expect(pieces.slice(-2)).toEqual(['<{"item":"lamp","count":2}>', '{"item":"lamp","count":4}']);
  });
});

test("a repair request for an output is no user message: trimming keeps the input, and input guardrails check only the input", async () => {
  const looked: string[] = [];
  const model = native([say("Lamps."), say("{}"), say('{"item": "lamp", "count": 2}')]);
  const middleware = [
    inputGuardrail({
      check: ({ text }) => {
        looked.push(text);
        return undefined;
      },
    }),
    trimMessages({ maxUserTurns: 1 }),
  ];
  const agent = createAgent({ name: "clerk", model, output: Order, middleware });
  expect((await agent.run({ input: "Two lamps." }).result).output).toEqual(order);
  expect(looked).toEqual(["Two lamps."]);
  expect(model.requests.map(({ messages }) => messages.map(getMessageText)[0])).toEqual(Array(3).fill("Two lamps."));
});

describe("partial output", () => {
  async function partials(model: Model, output: z.ZodType<unknown>): Promise<readonly unknown[]> {
    const found: unknown[] = [];
    const run = createAgent({ name: "clerk", model, output }).run({ input: "Go" });
    for await (const partial of run.partialOutput()) found.push(partial);
    expect((await run.result).status).toBe("done");
    return found;
  }

  test("partial output grows part by part and is complete at the end", async () => {
    const model = native([say('{"item": "a red lamp", "count": 2}')]);
    expect(await partials(model, Order)).toEqual([
      {},
      { item: "a " },
      { item: "a red " },
      { item: "a red lamp" },
      { item: "a red lamp", count: 2 },
    ]);
  });

  test("partial output is parsed from inside Markdown code fences", async () => {
    const model = native([say(["```", "json\n{", '"item": "lamp"', ', "count": 2}', "\n```"])]);
    expect(await partials(model, Order)).toEqual([{}, { item: "lamp" }, order]);
  });

  test("partial output is parsed from a final call and from a wrapper object", async () => {
    const byCall = await partials(scriptedModel([call("final_answer", { item: "lamp", count: 2 })]), Order);
    expect(byCall.at(-1)).toEqual(order);
    const listed = await partials(native([say('{"value": ["a", "b"]}')]), z.array(z.string()));
    expect(listed).toEqual([["a"], ["a", "b"]]);
  });

  test("partial output restarts with a repaired answer and ignores other text", async () => {
    const found = await partials(
      native([say("It is {odd}"), say('{"item": "sofa"}'), say('{"item": "lamp", "count": 2}')]),
      Order,
    );
    expect(found).toEqual([{}, { item: "sofa" }, {}, { item: "lamp" }, order]);
  });

  test("partial output is typed as partial and refused for an agent without an output", () => {
    const agent = createAgent({
      name: "clerk",
      model: native([say("{}")]),
      output: { schema: Order, strategy: "native" },
    });
    const read = async () => {
      for await (const partial of agent.run({ input: "Go" }).partialOutput())
        expectTypeOf(partial).toEqualTypeOf<{ readonly item?: string; readonly count?: number }>();
    };
    expect(read).toBeTypeOf("function");
    const plain = createAgent({ name: "plain", model: scriptedModel([say("Hi")]) });
    expect(() => plain.run({ input: "Go" }).partialOutput()).toThrow(
      /partialOutput: expected an agent with structured output, got an agent without `output`/,
    );
  });
});

describe("output across crashes", () => {
  const script = [call("look", { word: "lamp" }), call("final_answer", { item: "lamp" }), final("lamp", 2)];

  async function crashedAt(nth: number): Promise<string> {
    const store = memoryStore();
    const peer = store.peer();
    const model = scriptedModel(script, { key: "transcript" });
    const agent = createAgent({ name: "clerk", model, tools: [look], output: Order });
    let seen = 0;
    let crashed = false;
    const run = agent.run({ thread: "t", input: "Two lamps.", store });
    run.on(() => {
      if (seen++ !== nth) return;
      crashed = true;
      store.crash();
    });
    const first = await run.result.then(
      ({ status }) => status,
      (error: unknown) => {
        if (!isStatewrightError(error, "store_closed")) throw error;
        return error.code;
      },
    );
    if (!crashed) return "ended before";
    const { state, ...result } = await agent.resume({ thread: "t", store: peer }).result;
    expect(result).toMatchObject({ status: "done", output: order, ended: { by: "answer" } });
    expect(roles(state.messages)).toEqual([
      ...["user", "assistant", "tool"],
      ...["assistant", "tool", "assistant", "tool"],
    ]);
    return first;
  }

  test("a crash at any event of an agent with an output loses and duplicates no message", async () => {
    let nth = 1;
    while ((await crashedAt(nth)) !== "ended before") nth += 1;
    expect(nth).toBeGreaterThan(20);
  });
});

test("an async output schema fails the run in both strategies without a repair request", async () => {
  const item = z.string().refine((name) => Promise.resolve(name !== ""));
  const answers = { tool: [call("final_answer", { item: "lamp" })], native: say('{"item":"lamp"}') };
  for (const strategy of ["tool", "native"] as const) {
    const model = native([answers[strategy]]);
    const agent = createAgent({ name: "later", model, output: { schema: z.object({ item }), strategy } });
    const error: unknown = await agent.run({ input: "go" }).result.catch((thrown: unknown) => thrown);
    expect(isStatewrightError(error, "async_schema"), String(error)).toBe(true);
    expect(model.requests).toHaveLength(1);
  }
  const seen = z.object({ item: z.string().refine(async () => true) });
  expect(() => createAgent({ name: "later", model: native([]), output: seen })).toThrow(
    "async_schema: the output schema",
  );
});
