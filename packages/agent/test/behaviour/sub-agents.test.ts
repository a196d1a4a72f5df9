/** Agents as tools of agents: answers, recorded work, interrupts, limits and refusals. */
import { agentTool, createAgent, turnCountIs } from "@statewright/agent";
import { sumUsage } from "@statewright/agent/inspect";
import { budget, confirmTools, inputGuardrail, limitCalls, outputGuardrail } from "@statewright/agent/middleware";
import {
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  getMessageText,
  listToolCalls,
  type Message,
  type ModelRequest,
  memoryStore,
  type RunEvent,
  run as runGraph,
  START,
  StatewrightError,
  subgraph,
  toolRegistry,
} from "@statewright/core";
import { toMermaid } from "@statewright/core/inspect";
import { call, failWith, say, scriptedModel, virtualClock } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createPayTool } from "../support/payment-tool.ts";

/** Returns the text of the last message of a request. */
function getLast({ messages }: ModelRequest): string {
  const last = messages.at(-1);
  return last === undefined ? "" : getMessageText(last);
}

/** Returns the answers of the last tool calls. */
function listAnswers(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "tool" ? [`${message.isError ? "error: " : ""}${getMessageText(message)}`] : [],
  );
}

const lookUp = defineTool({
  name: "look_up",
  description: "Look a word up.",
  input: z.object({ word: z.string() }),
  effect: "pure",
  run: ({ word }) => `${word}: found`,
});

/** Looks the task up once, then answers with the result. */
function researcher() {
  return createAgent({
    name: "Researcher",
    instructions: "You research.",
    model: scriptedModel((request) =>
      request.messages.at(-1)?.role === "user" ? call("look_up", { word: getLast(request) }) : say(getLast(request)),
    ),
    tools: [lookUp],
  });
}

/** Calls a sub-agent for every task in one message, then answers with the results. */
function createBoss(tools: Parameters<typeof createAgent>[0]["tools"], ...tasks: readonly string[]) {
  const model = scriptedModel((request) =>
    request.messages.at(-1)?.role === "user"
      ? tasks.map((task) => call("researcher", { task }))
      : say(listAnswers(request.messages).join(" | ")),
  );
  return { model, agent: createAgent({ name: "boss", model, ...(tools && { tools }) }) };
}

describe("agents as tools", () => {
  test("an agent tool is called with a task, and only its answer reaches the calling model", async () => {
    const { agent, model } = createBoss([agentTool(researcher(), { description: "Researches a topic." })], "bees");
    const { state } = await agent.run({ input: "Find out." }).result;
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("bees: found");
    const [first, second] = model.requests;
    expect(first?.tools).toMatchObject([
      { name: "researcher", description: "Researches a topic.", inputSchema: { required: ["task"] } },
    ]);
    // The question, the call and its answer: no message of the sub-agent.
    expect(second?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(JSON.stringify(second?.messages)).not.toContain("look_up");
  });

  test("an agent tool may have its own arguments, prompt, state and context, and returns typed output", async () => {
    const Outer = defineContext({ user: z.string(), plan: z.enum(["free", "paid"]) });
    const Inner = defineContext({ name: z.string() });
    const observed: string[] = [];
    const writer = createAgent({
      name: "writer",
      context: Inner,
      instructions: (_state, { name }) => `You write for ${name}.`,
      output: z.object({ title: z.string(), words: z.int() }),
      model: scriptedModel((request) => {
        observed.push(`${request.instructions} ${getLast(request)}`);
        return call("final_answer", { title: "Bees", words: 3 });
      }),
    });
    const write = agentTool(writer, {
      name: "write",
      description: "Writes.",
      input: z.object({ topic: z.string(), length: z.int() }),
      prompt: ({ topic, length }) => `${length} words about ${topic}`,
      context: (outer: { readonly user: string }) => ({ name: outer.user }),
      output: ({ output, ended, text }) => ({
        content: `${output?.title} (${ended.by}) ${text}`,
        value: output?.words,
      }),
    });
    const agent = createAgent({
      name: "boss",
      context: Outer,
      model: scriptedModel([call("write", { topic: "bees", length: 3 }), say("Done.")]),
      tools: [write],
    });
    const results: unknown[] = [];
    const run = agent.run({ input: "Write.", context: { user: "Ann", plan: "free" } });
    run.on((event) => {
      if (event.type === "tool.completed" && event.within === undefined) results.push(event.result.value);
    });
    const { state } = await run.result;
    expect(observed).toEqual(["You write for Ann. 3 words about bees"]);
    expect(listAnswers(state.messages)[0]).toMatch(/^Bees \(answer\)/);
    expect(results).toEqual([3]);
  });

  test("an agent tool with an output schema returns its output as data by default", async () => {
    const counter = createAgent({
      name: "counter",
      output: z.object({ count: z.int() }),
      model: scriptedModel([call("final_answer", { count: 3 })]),
    });
    const agent = createAgent({
      name: "boss",
      model: scriptedModel([call("counter", { task: "count" }), say("Done.")]),
      tools: [agentTool(counter, { description: "Counts." })],
    });
    const { state } = await agent.run({ input: "Count." }).result;
    const answer = state.messages.find(({ role }) => role === "tool");
    expect(answer?.content).toEqual([{ type: "json", value: { count: 3 } }]);
  });

  test("the diagram of an agent contains its sub-agent inside the tool node", () => {
    const { agent } = createBoss([agentTool(researcher(), { description: "Researches." })]);
    expect(toMermaid(agent)).toContain("subgraph tools_researcher [researcher]");
  });
});

describe("parallel sub-agents", () => {
  test("sub-agents of one message run in parallel, their events name the call, and the answers are in call order", async () => {
    const { agent } = createBoss([agentTool(researcher(), { description: "Researches." })], "ants", "bees", "cats");
    const run = agent.run({ input: "Find out.", store: memoryStore(), thread: "t" });
    const events: RunEvent[] = [];
    run.on((event) => events.push(event));
    const { state } = await run.result;
    expect(listAnswers(state.messages)).toEqual(["ants: found", "bees: found", "cats: found"]);
    const inner = events.filter(({ within }) => within === "researcher");
    expect(new Set(inner.map(({ withinId }) => withinId))).toEqual(new Set(["1:0:0", "1:0:1", "1:0:2"]));
    const spoken = inner.flatMap((event) =>
      event.type === "message.delta" ? [[event.withinId, event.text] as const] : [],
    );
    const joinText = (id: string): string => spoken.flatMap(([from, text]) => (from === id ? [text] : [])).join("");
    expect(joinText("1:0:1")).toBe("bees: found");
    // All sub-agents start before any of them ends.
    const order = events.flatMap((event) =>
      event.within === "researcher" && (event.type === "model.started" || event.type === "message.completed")
        ? [`${event.type} ${event.withinId}`]
        : [],
    );
    expect(order.slice(0, 3)).toEqual(["model.started 1:0:0", "model.started 1:0:1", "model.started 1:0:2"]);
  });

  test("the text stream of a run contains only the text of the outermost agent", async () => {
    const { agent } = createBoss([agentTool(researcher(), { description: "Researches." })], "ants");
    const run = agent.run({ input: "Find out." });
    let text = "";
    for await (const part of run.text()) text += part;
    expect(text).toBe("ants: found");
    await run.result;
  });

  test("token usage of all sub-agents, also failed ones, is reported with their answers and summed in the conversation", async () => {
    const usage = { inputTokens: 10, outputTokens: 5 };
    const worker = createAgent({
      name: "researcher",
      model: scriptedModel((request) => {
        if (request.messages.at(-1)?.role === "tool") return say("Enough.", { usage });
        return getLast(request) === "fails"
          ? failWith(new Error("no"))
          : [say("Looking.", { usage }), call("look_up", { word: "x" })];
      }),
      tools: [lookUp],
      retry: { attempts: 1 },
    });
    const model = scriptedModel((request) =>
      request.messages.at(-1)?.role === "user"
        ? [
            say("Go.", { usage }),
            call("researcher", { task: "a" }),
            call("researcher", { task: "b" }),
            call("researcher", { task: "fails" }),
          ]
        : say("Done.", { usage }),
    );
    const agent = createAgent({ name: "boss", model, tools: [agentTool(worker, { description: "Works." })] });
    const { state } = await agent.run({ input: "Go." }).result;
    const used = state.messages.flatMap((message) => (message.role === "tool" ? [message.usage] : []));
    expect(used).toEqual([{ inputTokens: 20, outputTokens: 10 }, { inputTokens: 20, outputTokens: 10 }, undefined]);
    expect(sumUsage(state.messages)).toEqual({ inputTokens: 60, outputTokens: 30 });
    // No request contains it.
    expect(JSON.stringify(model.requests)).not.toContain('"usage":{"inputTokens":20');
  });
});

describe("sub-agent interrupts", () => {
  const paid: number[] = [];
  const pay = createPayTool(paid, (cents) => `paid ${cents}`);
  const first = defineMiddleware({
    name: "first",
    beforeTool: ({ call: made }) => (made.name === "pay" ? decide.interrupt(made, "it pays") : undefined),
  });

  function createDesk() {
    const clerk = createAgent({
      name: "clerk",
      model: scriptedModel((request) =>
        request.messages.at(-1)?.role === "user"
          ? call("pay", { cents: Number(getLast(request)) })
          : say(getLast(request)),
      ),
      tools: [pay],
      middleware: [first],
    });
    const model = scriptedModel((request) =>
      request.messages.at(-1)?.role === "user"
        ? [call("clerk", { task: "7" }), call("clerk", { task: "8" })]
        : say(listAnswers(request.messages).join(" | ")),
    );
    return { model, agent: createAgent({ name: "desk", model, tools: [agentTool(clerk, { description: "Pays." })] }) };
  }

  test("interrupts of a sub-agent reach the outermost caller as clerk.approve, and each is answered separately", async () => {
    paid.length = 0;
    const store = memoryStore();
    const { agent, model } = createDesk();
    const at = { store, thread: "t" };
    const waits = await agent.run({ ...at, input: "Pay." }).result;
    expect(waits).toMatchObject({
      status: "waiting",
      interrupts: [
        { key: "clerk.approve", node: "clerk.tools", payload: { tool: "pay", args: { cents: 7 } } },
        { key: "clerk.approve", node: "clerk.tools", payload: { tool: "pay", args: { cents: 8 } } },
      ],
    });
    const ids = waits.status === "waiting" ? waits.interrupts.map(({ id }) => id) : [];
    await expect(agent.resume({ ...at, answers: { "clerk.approve": true } }).result).rejects.toMatchObject({
      code: "ambiguous_answer",
    });
    const again = await agent.resume({ ...at, answers: { [ids[1] as `${string}:${string}`]: true } }).result;
    expect(again.status).toBe("waiting");
    const end = await agent.resume({ ...at, answers: { "clerk.approve": { approved: false, reason: "too much" } } })
      .result;
    expect(end.status).toBe("done");
    expect(listAnswers(end.state.messages)).toEqual(["A person denied this call: too much", "paid 8"]);
    expect(paid).toEqual([8]);
    expect(model.requests).toHaveLength(2);
  });
});

describe("unanswered sub-agents", () => {
  const createEndlessAgent = (more: Partial<Parameters<typeof createAgent>[0]> = {}) =>
    createAgent({
      name: "researcher",
      model: scriptedModel(
        Array.from({ length: 20 }, (_, turn) => [say(`Note ${turn + 1}.`), call("look_up", { word: "x" })]),
      ),
      tools: [lookUp],
      ...more,
    });

  async function getAnswer(worker: ReturnType<typeof createEndlessAgent>, more: { readonly maxSteps?: number } = {}) {
    const { agent } = createBoss([agentTool(worker, { description: "Researches." })], "x");
    const { status, state } = await agent.run({ input: "Go.", ...more }).result;
    return [status, ...listAnswers(state.messages)];
  }

  test("a sub-agent stopped by stopWhen is an error, and the model reads the reason and the last text [T55]", async () => {
    expect(await getAnswer(createEndlessAgent({ stopWhen: turnCountIs(3) }))).toEqual([
      "done",
      "error: researcher was stopped before it had an answer: it was ended by stopWhen. Findings so far: Note 3.",
    ]);
  });

  test("a sub-agent ended by its own middleware returns an error with the reason, and the calling agent continues [T55]", async () => {
    expect(await getAnswer(createEndlessAgent({ middleware: [limitCalls({ perRun: 2, atLimit: "end" })] }))).toEqual([
      "done",
      "error: researcher was stopped before it had an answer: The limit of 2 calls in this run is reached. Findings so far: Note 3.",
    ]);
  });

  test("a sub-agent ended by a hook for a budget returns an error with the reason of the hook [T55]", async () => {
    const budget = defineMiddleware({
      name: "budget",
      beforeModel: (request, { end }) =>
        request.messages.length > 4
          ? end("I had to stop.", { by: "budget", reason: "2 turns are used up" })
          : undefined,
    });
    expect(await getAnswer(createEndlessAgent({ middleware: [budget] }))).toEqual([
      "done",
      "error: researcher was stopped before it had an answer: 2 turns are used up. Findings so far: Note 2.",
    ]);
  });

  test("a sub-agent answer truncated at the length limit is an error", async () => {
    const cut = createAgent({
      name: "researcher",
      model: {
        id: "cut",
        respond: async () => ({ content: [{ type: "text", text: "Half of" }], finish: "length" as const }),
      },
    });
    expect(await getAnswer(cut)).toEqual([
      "done",
      "error: researcher was stopped before it had an answer: its answer was truncated at the length limit. Findings so far: Half of",
    ]);
  });

  test("a sub-agent answer withheld by the provider is an error, unless accept lists that end", async () => {
    const withheld = createAgent({
      name: "researcher",
      model: { id: "withheld", respond: async () => ({ content: [], finish: "filter" as const }) },
    });
    expect(await getAnswer(withheld)).toEqual([
      "done",
      "error: researcher was stopped before it had an answer: its answer was withheld by the provider.",
    ]);
    const tool = agentTool(withheld, { description: "x", accept: ["filter"], output: ({ ended }) => ended.by });
    const { state } = await createBoss([tool], "x").agent.run({ input: "Go." }).result;
    expect(listAnswers(state.messages)).toEqual(["filter"]);
  });

  test.each([
    [
      "output, with a reason",
      outputGuardrail({ check: () => ({ refuse: "I may not tell", reason: "no names of patients" }) }),
      "a guardrail refused: no names of patients. Last text: I may not tell.",
    ],
    [
      "output, after failed repairs",
      outputGuardrail({ check: () => ({ askAgain: "Name a source" }) }),
      "a guardrail refused: Name a source. Last text: I cannot answer that.",
    ],
    [
      "output, without a reason",
      outputGuardrail({ check: () => ({ refuse: "I may not tell." }) }),
      "a guardrail refused: outputGuardrail. Last text: I may not tell.",
    ],
    [
      "input",
      inputGuardrail({ check: () => ({ refuse: "I do no homework.", reason: "homework" }) }),
      "a guardrail refused: homework. Last text: I do no homework.",
    ],
  ])("a sub-agent refused by a guardrail returns the reason and its text: %s", async (_what, guardrail, said) => {
    const guarded = createAgent({
      name: "researcher",
      model: scriptedModel(() => say("It is Ann.")),
      middleware: [guardrail],
    });
    expect(await getAnswer(guarded)).toEqual([
      "done",
      `error: researcher was stopped before it had an answer: ${said}`,
    ]);
  });

  test("a failed sub-agent returns an error without the cause", async () => {
    const broken = createAgent({
      name: "researcher",
      model: scriptedModel([
        failWith(new StatewrightError("model_failed", { what: "key sk-123 is wrong", next: "Mend it" })),
      ]),
      retry: { attempts: 1 },
    });
    expect(await getAnswer(broken)).toEqual(["done", "error: researcher failed before it had an answer."]);
  });

  test("accept of an agent tool lists the ends that count as success", async () => {
    const worker = createEndlessAgent({ stopWhen: turnCountIs(1) });
    const tool = agentTool(worker, {
      description: "Researches.",
      accept: ["answer", "tool", "stopWhen"],
      output: ({ messages, ended }) => `${ended.by} after ${messages.length}`,
    });
    const { agent } = createBoss([tool], "x");
    const { state } = await agent.run({ input: "Go." }).result;
    expect(listAnswers(state.messages)).toEqual(["stopWhen after 3"]);
  });

  test("a sub-agent is cancelled with its run, and its tool call is answered as cancelled", async () => {
    const world = virtualClock();
    const hanging = createAgent({
      name: "researcher",
      model: {
        id: "hangs",
        respond: (_request, { signal }) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
      },
    });
    const { agent } = createBoss([agentTool(hanging, { description: "Researches." })], "x");
    const run = agent.run({ input: "Go.", world, store: memoryStore(), thread: "t" });
    run.on((event) => {
      if (event.type === "model.started" && event.within === "researcher") run.cancel("not needed");
    });
    const { status, state } = await run.result;
    expect(status).toBe("cancelled");
    expect(listAnswers(state.messages)).toEqual(["error: Cancelled"]);
  });
});

describe("middleware around sub-agents", () => {
  const worker = () =>
    createAgent({
      name: "researcher",
      model: scriptedModel((request) =>
        request.messages.length < 6 ? [say("Note."), call("look_up", { word: "x" })] : say("Read all."),
      ),
      tools: [lookUp],
    });

  test("a budget of the calling agent covers its whole tree of sub-agents [T54]", async () => {
    const model = scriptedModel([call("researcher", { task: "x" }), say("never")]);
    const agent = createAgent({
      name: "boss",
      model,
      tools: [agentTool(worker(), { description: "Researches." })],
      middleware: [budget({ turns: 3 })],
    });
    const end = await agent.run({ input: "Go.", store: memoryStore(), thread: "t" }).result;
    expect(listAnswers(end.state.messages)).toEqual([
      "error: researcher was stopped before it had an answer: the budget of 3 turns is exhausted. Findings so far: Note.",
    ]);
    expect(end).toMatchObject({ status: "done", ended: { by: "budget" } });
    expect(model.requests).toHaveLength(1);
  });

  test("a budget exceeded inside a sub-agent interrupts for an extension", async () => {
    const agent = createAgent({
      name: "boss",
      model: scriptedModel([call("researcher", { task: "x" }), say("Done.")]),
      tools: [agentTool(worker(), { description: "Researches." })],
      middleware: [budget({ turns: 2, onExceeded: "ask" })],
    });
    const at = { store: memoryStore(), thread: "t" };
    const waits = await agent.run({ ...at, input: "Go." }).result;
    const [asked] = waits.status === "waiting" ? waits.interrupts : [];
    expect(asked).toMatchObject({ key: "researcher.budget", payload: { exceeded: "turns" } });
    const end = await agent.resume({ ...at, answers: { [asked?.id as `${string}:${string}`]: { turns: 5 } } }).result;
    expect(listAnswers(end.state.messages)).toEqual(["Read all."]);
    expect(end).toMatchObject({ status: "done", ended: { by: "answer" } });
  });

  test("only middleware with inherited set applies to sub-agents [T54]", async () => {
    const seen: string[] = [];
    const watch = (name: string, inherited: boolean) =>
      defineMiddleware({
        name,
        inherited,
        beforeTool: ({ call: made }) => {
          seen.push(`${name} ${made.name}`);
          return undefined;
        },
      });
    const { agent } = createBoss([agentTool(researcher(), { description: "Researches." })], "bees");
    expect(agent.name).toBe("boss");
    const model = scriptedModel([call("researcher", { task: "bees" }), say("Done.")]);
    const outer = createAgent({
      name: "boss",
      model,
      tools: [agentTool(researcher(), { description: "Researches." })],
      middleware: [watch("all", true), watch("own", false)],
    });
    await outer.run({ input: "Go." }).result;
    expect(seen).toEqual(["all researcher", "own researcher", "all look_up"]);
  });
});

describe("policies of a calling agent", () => {
  test.each([
    ["applies to its own calls only", confirmTools(), "done", [7]],
    ["applies to calls of sub-agents when it is inherited", { ...confirmTools(), inherited: true }, "waiting", []],
  ] as const)("a policy of a calling agent %s", async (_, policy, status, made) => {
    const paid: number[] = [];
    const pay = createPayTool(paid);
    const clerk = createAgent({
      name: "clerk",
      model: scriptedModel([call("pay", { cents: 7 }), say("Paid.")]),
      tools: [{ ...pay, spec: { ...pay.spec, safety: { access: "write", spend: true } } }],
    });
    const agent = createAgent({
      name: "desk",
      model: scriptedModel([call("clerk", { task: "Pay." }), say("Done.")]),
      tools: [agentTool(clerk, { description: "Pays." })],
      middleware: [policy],
      store: memoryStore(),
    });
    const first = await agent.run({ thread: "t", input: "Go." }).result;
    expect([first.status, paid]).toEqual([status, made]);
    if (first.status !== "waiting") return;
    expect(first.interrupts.map(({ key }) => key)).toEqual(["clerk.approve"]);
    await agent.resume({ thread: "t", answers: { "clerk.approve": true } }).result;
    expect(paid).toEqual([7]);
  });
});

describe("agents as graph nodes", () => {
  test("an agent node maps input and output, streams within its node, and keeps its own channels", async () => {
    const clerk = createAgent({
      name: "clerk",
      state: defineState({ tone: z.string() }),
      instructions: ({ tone }) => `Be ${tone}.`,
      model: scriptedModel((request) => say(`${request.instructions} ${getLast(request)}`)),
    });
    const desk = defineGraph({
      name: "desk",
      state: defineState({ question: z.string(), answer: z.string().default("") }),
    })
      .nodes({
        clerk: subgraph(clerk, {
          input: ({ question }) => ({ ...clerk.toInput(question), tone: "kind" }),
          output: ({ messages }) => ({ answer: getMessageText(messages.at(-1) as Message) }),
        }),
        shout: ({ answer }) => ({ answer: answer.toUpperCase() }),
      })
      .edges({ [START]: "clerk", clerk: "shout", shout: END });
    const run = runGraph(desk, { input: { question: "Why?" }, store: memoryStore(), thread: "t" });
    let text = "";
    const reads = (async () => {
      for await (const part of run.text()) text += part;
    })();
    const places = new Set<string>();
    run.on((event) => {
      if (event.type === "message.delta") places.add(`${event.within} ${event.withinId}`);
    });
    const { state } = await run.result;
    await reads;
    expect(state).toEqual({ question: "Why?", answer: "BE KIND. WHY?" });
    // The text of an agent node belongs to its graph; the text of a sub-agent goes to the calling model.
    expect(text).toBe("Be kind. Why?");
    expect([...places]).toEqual(["clerk 0:0"]);
  });
});

describe("recursive agents", () => {
  test("an agent may call itself to a depth of 5, and a deeper call is refused with an error to the model", async () => {
    const deepest: string[] = [];
    const model = scriptedModel((request) => {
      const last = request.messages.at(-1);
      if (last?.role === "user") return call("helper", { task: `${getLast(request)}+` });
      if (last !== undefined && getMessageText(last).startsWith("Not run")) deepest.push(getMessageText(last));
      return say(
        getLast(request).startsWith("Not run")
          ? `stopped at ${getLast({ ...request, messages: request.messages.slice(0, 1) })}`
          : getLast(request),
      );
    });
    const tools = toolRegistry([lookUp]);
    const helper = createAgent({ name: "helper", model, tools });
    tools.register(agentTool(helper, { description: "Helps." }));
    const { state } = await helper.run({ input: "go", store: memoryStore(), thread: "t" }).result;
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("stopped at go+++++");
    expect(deepest).toHaveLength(1);
    expect(deepest[0]).toContain("limited to a depth of 5");
  });
});

test("an agent tool declares the effect idempotent", () => {
  const { agent } = createBoss([agentTool(researcher(), { description: "Researches." })], "bees");
  expect(agent.tools.map(({ spec }) => spec.name)).toEqual(["researcher"]);
  expect(agent.tools[0]?.spec.effect).toBe("idempotent");
});

test("a conversation continues over several inputs, each with its own sub-agent calls", async () => {
  const store = memoryStore();
  const { agent } = createBoss([agentTool(researcher(), { description: "Researches." })], "bees");
  await agent.run({ input: "One.", store, thread: "t" }).result;
  const { state } = await agent.run({ input: "Two.", store, thread: "t" }).result;
  expect(listAnswers(state.messages)).toEqual(["bees: found", "bees: found"]);
  const calls = state.messages.flatMap((message) => (message.role === "assistant" ? listToolCalls(message) : []));
  expect(calls).toHaveLength(2);
});

describe("invalid agent tools", () => {
  test("agentTool with an agent factory requires a name", () => {
    expect(() => agentTool(() => researcher(), { description: "x" })).toThrow(
      /agentTool: `name` must be a tool name .+, got undefined/,
    );
  });
  test("agentTool refuses an unknown option", () => {
    expect(() => agentTool(researcher(), { description: "x", effect: "once" } as never)).toThrow(
      /agentTool has no option "effect"/,
    );
  });
  test("agentTool refuses an accept value that is not a list", () => {
    expect(() => agentTool(researcher(), { description: "x", accept: "answer" as never })).toThrow(
      /agentTool "researcher": `accept` must be a list of ends/,
    );
  });
});
