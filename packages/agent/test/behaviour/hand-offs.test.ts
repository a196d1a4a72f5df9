/** Teams: agents that hand one conversation over to each other. */
import {
  agentTool,
  createAgent,
  type HandoffFilter,
  handoff,
  removeToolCalls,
  team,
  turnCountIs,
} from "@statewright/agent";
import { budget, limitCalls } from "@statewright/agent/middleware";
import {
  decide,
  defineContext,
  defineMiddleware,
  defineTool,
  getHistory,
  getMessageText,
  type Message,
  type ModelRequest,
  memoryStore,
  type RunEvent,
} from "@statewright/core";
import { toMermaid } from "@statewright/core/inspect";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createPayTool } from "../support/payment-tool.ts";

function listShownTexts({ messages }: ModelRequest): readonly string[] {
  return messages.map((message) => {
    const text = getMessageText(message);
    const calls =
      message.role === "assistant"
        ? message.content.flatMap((block) => (block.type === "call" ? [block.name] : []))
        : [];
    return [message.role, text, ...calls].filter((part) => part !== "").join(" ");
  });
}

function listAnswers(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "tool" ? [`${message.isError ? "error: " : ""}${getMessageText(message)}`] : [],
  );
}

/** A desk agent that hands over payment questions, and an accountant that hands back other questions. */
function createDesk(
  scripts: {
    readonly triage: Parameters<typeof scriptedModel>[0];
    readonly billing: Parameters<typeof scriptedModel>[0];
  },
  more: { readonly filter?: HandoffFilter; readonly maxHandoffs?: number; readonly inputTo?: "active" | "start" } = {},
) {
  const { filter, ...rest } = more;
  const triage = scriptedModel(scripts.triage as readonly never[]);
  const billing = scriptedModel(scripts.billing as readonly never[]);
  const agents = [
    createAgent({
      name: "triage",
      instructions: "Sort.",
      model: triage,
      tools: [handoff("billing", { ...(filter && { filter }) })],
    }),
    createAgent({ name: "billing", instructions: "Bill.", model: billing, tools: [handoff("triage")] }),
  ] as const;
  return { triage, billing, team: team({ name: "desk", agents, ...rest }) };
}

describe("hand-offs", () => {
  test("a hand-off is an answered tool call; the next agent gets the full conversation, and events name the active agent", async () => {
    const { team: office, billing } = createDesk({
      triage: [call("transfer_to_billing", {})],
      billing: [say("You owe nothing.")],
    });
    const run = office.run({ input: "What do I owe?" });
    const events: RunEvent[] = [];
    run.on((event) => events.push(event));
    const { state } = await run.result;
    expect(state.activeAgent).toBe("billing");
    expect(billing.requests.map(listShownTexts)).toEqual([
      ["user What do I owe?", "assistant transfer_to_billing", "tool The conversation is now with billing."],
    ]);
    expect(billing.requests[0]?.instructions).toBe("Bill.");
    expect(billing.requests[0]?.tools.map(({ name }) => name)).toEqual(["transfer_to_triage"]);
    const spoke = events.flatMap((event) => (event.type === "message.completed" ? [event.node] : []));
    expect(spoke).toEqual(["triage", "billing"]);
    expect(events.every(({ within }) => within === undefined)).toBe(true);
  });

  test("a hand-off may return to the first agent and go forth again", async () => {
    const { team: office } = createDesk({
      triage: [call("transfer_to_billing", {}), call("transfer_to_billing", {})],
      billing: [call("transfer_to_triage", {}), say("Settled.")],
    });
    const { state } = await office.run({ input: "Hello." }).result;
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("Settled.");
    expect(listAnswers(state.messages)).toEqual([
      "The conversation is now with billing.",
      "The conversation is now with triage.",
      "The conversation is now with billing.",
    ]);
  });

  test("a hand-off waits for the other calls of its message, and the first of two hand-offs counts", async () => {
    const look = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "seen" });
    const c = createAgent({ name: "c", model: scriptedModel([say("c")]) });
    const b = createAgent({ name: "b", model: scriptedModel([say("b")]) });
    const a = createAgent({
      name: "a",
      model: scriptedModel([[call("look", {}), call("transfer_to_b", {}), call("transfer_to_c", {})]]),
      tools: [look, handoff(b), handoff(c)],
    });
    const { state } = await team({ name: "t", agents: [a, b, c] }).run({ input: "Go." }).result;
    expect(listAnswers(state.messages)).toEqual([
      "seen",
      "The conversation is now with b.",
      "error: Not handed over: b has the conversation already.",
    ]);
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("b");
  });

  test("the next agent sees the arguments of the hand-off in its tool call", async () => {
    const reason = z.object({ reason: z.string() });
    const b = createAgent({
      name: "b",
      model: scriptedModel((request) => say(JSON.stringify(request.messages.at(1)?.content))),
    });
    const a = createAgent({
      name: "a",
      model: scriptedModel([call("ask_b", { reason: "money" })]),
      tools: [handoff(b, { name: "ask_b", description: "For money.", input: reason })],
    });
    const { state } = await team({ name: "t", agents: [a, b] }).run({ input: "Go." }).result;
    expect(getMessageText(state.messages.at(-1) as Message)).toContain('"reason":"money"');
  });

  test("a hand-off to the active agent itself, or in an agent without a team, is an error", async () => {
    const self = createAgent({
      name: "a",
      model: scriptedModel([call("transfer_to_a", {}), say("Then not.")]),
      tools: [handoff("a")],
    });
    const { state } = await team({ name: "t", agents: [self] }).run({ input: "Go." }).result;
    expect(listAnswers(state.messages)).toEqual(["error: Not handed over: you are a."]);
    const alone = createAgent({
      name: "a",
      model: scriptedModel([call("transfer_to_b", {}), say("Then not.")]),
      tools: [handoff("b")],
    });
    const end = await alone.run({ input: "Go." }).result;
    expect(listAnswers(end.state.messages)).toEqual([
      "error: Not handed over: the agent b does not exist here. Answer yourself.",
    ]);
  });
});

describe("hand-off limits", () => {
  const pingPong = (times: number) => ({
    triage: Array.from({ length: times }, () => call("transfer_to_billing", {})),
    billing: Array.from({ length: times }, () => call("transfer_to_triage", {})),
  });

  test("after ten hand-offs since the last user message a further hand-off is refused with an error to the agent", async () => {
    const scripts = pingPong(6);
    const { team: office } = createDesk({
      triage: [...scripts.triage.slice(0, 6), say("I answer.")],
      billing: scripts.billing,
    });
    const { state } = await office.run({ input: "Go." }).result;
    const answers = listAnswers(state.messages);
    expect(answers).toHaveLength(11);
    expect(answers[10]).toBe(
      "error: Not handed over: the conversation was already handed over 10 times since the last user message. Answer yourself.",
    );
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("I answer.");
  });

  test("maxHandoffs sets the hand-off limit, and the count restarts with each input", async () => {
    const { team: office } = createDesk(
      {
        triage: [call("transfer_to_billing", {}), call("transfer_to_billing", {})],
        billing: [call("transfer_to_triage", {}), say("One."), call("transfer_to_triage", {})],
      },
      { maxHandoffs: 1 },
    );
    const store = memoryStore();
    const first = await office.run({ input: "Go.", store, thread: "t" }).result;
    expect(listAnswers(first.state.messages)).toEqual([
      "The conversation is now with billing.",
      "error: Not handed over: the conversation was already handed over 1 times since the last user message. Answer yourself.",
    ]);
  });
});

describe("input routing of a team", () => {
  const scripts = () => ({
    triage: [call("transfer_to_billing", {}), say("Triage again.")],
    billing: [say("One."), say("Two.")],
  });

  test("the next input of a team goes to its active agent, also in another process", async () => {
    const store = memoryStore();
    const { team: office } = createDesk(scripts());
    await office.run({ input: "First.", store, thread: "t" }).result;
    const peer = store.peer();
    store.crash();
    const { state } = await office.run({ input: "Second.", store: peer, thread: "t" }).result;
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("Two.");
  });

  test("the next input of a team with inputTo start goes to the start agent", async () => {
    const store = memoryStore();
    const { team: office } = createDesk(scripts(), { inputTo: "start" });
    await office.run({ input: "First.", store, thread: "t" }).result;
    const { state } = await office.run({ input: "Second.", store, thread: "t" }).result;
    expect(getMessageText(state.messages.at(-1) as Message)).toBe("Triage again.");
    expect(state.activeAgent).toBe("triage");
  });
});

describe("hand-off filters", () => {
  test("a hand-off filter changes every later request of the next agent's model and leaves the state unchanged", async () => {
    const filter: HandoffFilter = (messages, { from, to, args }) => {
      expect([from, to, args]).toEqual(["triage", "billing", {}]);
      return removeToolCalls(messages);
    };
    const look = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "seen" });
    const billing = scriptedModel([call("look", {}), say("Done.")]);
    const office = team({
      name: "desk",
      agents: [
        createAgent({
          name: "triage",
          model: scriptedModel([
            [say("I look."), call("look", {})],
            [say("One moment."), call("transfer_to_billing", {})],
          ]),
          tools: [look, handoff("billing", { filter })],
        }),
        createAgent({ name: "billing", model: billing, tools: [look] }),
      ],
    });
    const { state } = await office.run({ input: "What do I owe?" }).result;
    expect(billing.requests.map(listShownTexts)).toEqual([
      ["user What do I owe?"],
      ["user What do I owe?", "assistant look", "tool seen"],
    ]);
    expect(state.messages).toHaveLength(8);
  });

  test("a hand-off filter that leaves a call without its answer fails with invalid_transcript", async () => {
    const { team: office } = createDesk(
      { triage: [call("transfer_to_billing", {})], billing: [say("x")] },
      { filter: (messages) => messages.filter(({ role }) => role !== "tool") },
    );
    await expect(office.run({ input: "Go." }).result).rejects.toMatchObject({ code: "invalid_transcript" });
  });
});

describe("settings of team members", () => {
  test("each agent of a team keeps its own tools, approvals, conditions, channels and context", async () => {
    const Person = defineContext({ user: z.string() });
    const Plan = defineContext({ plan: z.string() });
    const paid: number[] = [];
    const pay = createPayTool(paid);
    const first = defineMiddleware({
      name: "first",
      beforeTool: ({ call: made }) => (made.name === "pay" ? decide.interrupt(made, "it pays") : undefined),
    });
    const observed: string[] = [];
    const a = createAgent({
      name: "a",
      context: Person,
      instructions: (_state, { user }) => `For ${user}.`,
      model: scriptedModel((request) => {
        observed.push(String(request.instructions));
        return call("transfer_to_b", {});
      }),
      tools: [handoff("b")],
      middleware: [limitCalls({ perRun: 5 })],
    });
    const b = createAgent({
      name: "b",
      context: Plan,
      instructions: (_state, { plan }) => `On ${plan}.`,
      model: scriptedModel((request) => {
        observed.push(String(request.instructions));
        return call("pay", { cents: 7 });
      }),
      tools: [pay],
      middleware: [first],
      stopWhen: turnCountIs(2),
    });
    const office = team({ name: "t", agents: [a, b] });
    const at = { store: memoryStore(), thread: "t", context: { user: "Ann", plan: "free" } };
    const waits = await office.run({ ...at, input: "Go." }).result;
    expect(waits).toMatchObject({ status: "waiting", interrupts: [{ key: "approve", node: "b_tools" }] });
    const end = await office.resume({ ...at, answers: { approve: true } }).result;
    expect(end).toMatchObject({ status: "done", ended: { by: "stopWhen" } });
    expect(observed).toEqual(["For Ann.", "On free."]);
    expect(paid).toEqual([7]);
    const nodes: string[] = [];
    for await (const step of getHistory(office, { store: at.store, thread: "t" })) nodes.push(step.nodes.join());
    expect(nodes).toEqual(["b_tools", "b", "a_tools", "a", ""]);
  });

  test("a team fails with async_schema when an agent's context schema is async", async () => {
    const later = z.string().refine((user) => Promise.resolve(user !== "Ann"));
    const model = scriptedModel([say("Hi.")]);
    const a = createAgent({ name: "a", model, context: defineContext({ plan: z.string() }) });
    const b = createAgent({ name: "b", model, context: defineContext({ user: later }) });
    const office = team({ name: "t", agents: [a, b] });
    const { result } = office.run({ input: "Go.", context: { user: "Ann", plan: "free" } });
    await expect(result).rejects.toMatchObject({ code: "async_schema" });
  });

  test("a team returns the output of its last active agent", async () => {
    const a = createAgent({ name: "a", model: scriptedModel([call("transfer_to_b", {})]), tools: [handoff("b")] });
    const b = createAgent({
      name: "b",
      output: z.object({ sum: z.int() }),
      model: scriptedModel([call("final_answer", { sum: 3 })]),
    });
    const end = await team({ name: "t", agents: [a, b] }).run({ input: "Go." }).result;
    expect(end).toMatchObject({ status: "done", output: { sum: 3 } });
  });

  test("a hand-off filter keeps request changes made by hooks of the agent", async () => {
    const b = scriptedModel([say("Done.")]);
    const marks = defineMiddleware({
      name: "marks",
      beforeModel: (request) => ({
        ...request,
        instructions: `${request.instructions} Marked ${request.messages.length}.`,
      }),
    });
    const office = team({
      name: "t",
      agents: [
        createAgent({
          name: "a",
          model: scriptedModel([call("transfer_to_b", {})]),
          tools: [handoff("b", { filter: removeToolCalls })],
        }),
        createAgent({ name: "b", instructions: "B.", model: b, middleware: [marks] }),
      ],
    });
    await office.run({ input: "Go." }).result;
    expect(b.requests[0]?.instructions).toBe("B. Marked 1.");
  });

  test("team middleware applies to every agent of the team", async () => {
    const seen: string[] = [];
    const watch = defineMiddleware({
      name: "watch",
      beforeModel: (_request, { run }) => {
        seen.push(run.node);
      },
    });
    const a = createAgent({ name: "a", model: scriptedModel([call("transfer_to_b", {})]), tools: [handoff("b")] });
    const b = createAgent({ name: "b", model: scriptedModel([say("b")]) });
    await team({ name: "t", agents: [a, b], middleware: [watch] }).run({ input: "Go." }).result;
    expect(seen).toEqual(["a", "b"]);
  });
});

test("a crash after a hand-off and before the answer resumes with the agent that received the hand-off", async () => {
  const store = memoryStore();
  const {
    team: office,
    triage,
    billing,
  } = createDesk({
    triage: [call("transfer_to_billing", {})],
    billing: [say("Here.")],
  });
  const run = office.run({ input: "Go.", store, thread: "t" });
  run.on((event) => {
    if (event.type === "step.committed" && event.nodes.includes("triage_tools")) run.drain();
  });
  expect((await run.result).status).toBe("paused");
  const peer = store.peer();
  store.crash();
  const { state } = await office.resume({ store: peer, thread: "t" }).result;
  expect(getMessageText(state.messages.at(-1) as Message)).toBe("Here.");
  expect([triage.requests.length, billing.requests.length]).toEqual([1, 1]);
});

test("the diagram of a team contains its agents, and a team can be a tool of another agent", async () => {
  const { team: office } = createDesk({ triage: [call("transfer_to_billing", {})], billing: [say("x")] });
  const boss = createAgent({
    name: "boss",
    model: scriptedModel([call("desk", { task: "What do I owe?" }), say("Done.")]),
    tools: [agentTool(office, { description: "Answers customers." })],
  });
  const { state } = await boss.run({ input: "Go." }).result;
  expect(listAnswers(state.messages)).toEqual(["x"]);
  const picture = toMermaid(office);
  for (const line of ["triage[triage]", "triage_tools{{triage_tools}}", "triage_tools -.-> billing"])
    expect(picture).toContain(line);
});

describe("invalid teams", () => {
  const model = scriptedModel([]);
  const a = createAgent({ name: "a", model, tools: [handoff("nobody")] });
  const b = createAgent({ name: "b", model });
  const createInterruptMiddleware = (answer: z.ZodType) =>
    defineMiddleware({ name: "who", interrupts: { name: answer } });
  const createAskingAgent = (name: string, answer: z.ZodType) =>
    createAgent({ name, model, middleware: [createInterruptMiddleware(answer)] });
  const createBudgetAgent = (name: string, turns: number) =>
    createAgent({ name, model, middleware: [budget({ turns })] });
  test.each([
    [
      "without agents",
      () => team({ name: "t", agents: [] }),
      /team "t": `agents` must be a list of at least one agent, got an empty list/,
    ],
    [
      "with a hand-off to an unknown agent",
      () => team({ name: "t", agents: [a, b] }),
      /team "t": handoff "transfer_to_nobody" of agent "a": expected the name of an agent of the team, got "nobody"/,
    ],
    [
      "with two of one name",
      () => team({ name: "t", agents: [b, b] }),
      /`agents` must be a list of agents with different names, got two agents named "b"/,
    ],
    [
      "with an unknown start",
      () => team({ name: "t", agents: [b], start: "c" as never }),
      /`start` must be the name of an agent of the team, got "c"/,
    ],
    [
      "with a value that is not an agent",
      () => team({ name: "t", agents: [{} as never] }),
      /`agents` must be a list of agents, got /,
    ],
    [
      "with an unknown option",
      () => team({ name: "t", agents: [b], filter: 1 } as never),
      /team has no option "filter"/,
    ],
    [
      "with two budgets of one name, of which only one would count",
      () => team({ name: "t", agents: [createBudgetAgent("a", 5), createBudgetAgent("b", 7)] }),
      /team "t": expected one reducer of the channel "budgetSpent", got different reducers of two agents/,
    ],
    [
      "with two questions of one key, of which only one could be answered",
      () => team({ name: "t", agents: [createAskingAgent("a", z.string()), createAskingAgent("b", z.number())] }),
      /team "t": expected one interrupt under the key "name", got different interrupts of agent "a" and agent "b"/,
    ],
    [
      "with a question of the middleware around them under the key of one of theirs",
      () =>
        team({
          name: "t",
          agents: [createAskingAgent("a", z.string())],
          middleware: [createInterruptMiddleware(z.number())],
        }),
      /team "t": .*got different interrupts of agent "a" and middleware "who"/,
    ],
    ["with an invalid number", () => team({ name: "t", agents: [b], maxHandoffs: 0 }), /maxHandoffs/],
  ])("teams %s are refused", (_what, make, message) => {
    expect(make).toThrow(message);
  });
  test("several agents of a team may share an interrupt key or a tool without a body", () => {
    const name = z.string();
    const pick = defineTool({ name: "pick", description: "Picks.", input: z.object({}), output: z.string() });
    const member = (of: string) =>
      createAgent({ name: of, model, tools: [pick], middleware: [createInterruptMiddleware(name)] });
    const { interrupts } = team({ name: "t", agents: [member("a"), member("b")] });
    expect(Object.keys(interrupts)).toEqual(["approve", "name", "pick"]);
  });
  test("handoff refuses a target that is neither an agent nor a name, and a filter that is not a function", () => {
    expect(() => handoff(undefined as never)).toThrow(/handoff: expected an agent or the name of an agent/);
    expect(() => handoff("b", { filter: "x" as never })).toThrow(
      /handoff "transfer_to_b": `filter` must be a function/,
    );
  });
});
