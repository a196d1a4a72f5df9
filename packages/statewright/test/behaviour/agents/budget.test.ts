/**
 * A shared budget of an agent and its sub-agents over crashes at every commit: no spending is lost or counted twice.
 */
import { call, rejectInvalidTranscripts, type ScriptedCall, say, scriptedModel } from "@statewright/testing";
import { agentTool, createAgent, defineMiddleware, defineTool, type Model, memoryStore, type Store } from "statewright";
import { type BudgetOptions, budget } from "statewright/middleware";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { crashAtNth, ignoreResult, places } from "../../support/both-stores.ts";

const work = defineTool({
  name: "work",
  description: "Works.",
  input: z.object({}),
  effect: "pure",
  run: async () => {
    await waitForLoopTurn();
    return "worked";
  },
});

/** Turns the event loop inside an effect, so that its surroundings are written by a separate commit. */
const waitForLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Spent {
  readonly turns: number;
  readonly toolCalls: number;
  readonly tokens: number;
  readonly extended: object;
}
const sumSpent = (state: unknown): Spent => (state as { readonly budgetSpent: Spent }).budgetSpent;

const tenTokens = { usage: { inputTokens: 10, outputTokens: 0 } };

/** A lead agent with two parallel researchers. `asked` counts the requests of this process. */
function team(store: Store, options: BudgetOptions, asked: { count: number }) {
  const wait = {
    name: "wait",
    aroundModel: async (request: never, next: (request: never) => Promise<never>) => {
      asked.count += 1;
      await waitForLoopTurn();
      return next(request);
    },
  };
  const researcher = createAgent({
    name: "researcher",
    model: rejectInvalidTranscripts(
      scriptedModel(({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? say("found", tenTokens)
          : [say("", tenTokens), call("work", {}), call("work", {})],
      ),
    ),
    tools: [work],
    middleware: [wait as never],
  });
  return createAgent({
    name: "lead",
    model: rejectInvalidTranscripts(
      scriptedModel(({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? say("summed up", tenTokens)
          : [say("", tenTokens), call("research", { task: "one" }), call("research", { task: "two" })],
      ),
    ),
    tools: [agentTool(researcher, { name: "research", description: "Researches." })],
    middleware: [budget(options), wait as never],
    store,
  });
}

/** Runs the thread to its end; answers every interrupt with `more`. */
async function finish(store: Store, options: BudgetOptions, asked: { count: number }, more: object) {
  const agent = team(store, options, asked);
  const hasStarted = (await store.head("t", "main")) !== undefined;
  let result = hasStarted
    ? await agent.resume({ thread: "t" }).result
    : await agent.run({ thread: "t", input: "go" }).result;
  while (result.status === "waiting") {
    const answers = Object.fromEntries(result.interrupts.map(({ id }) => [id, more]));
    result = await agent.resume({ thread: "t", answers }).result;
  }
  return result;
}

const cases: readonly (readonly [string, BudgetOptions, object])[] = [
  ["all", { turns: 10, toolCalls: 10, tokens: 1_000 }, {}],
  ["turns", { turns: 4 }, {}],
  ["tool calls", { toolCalls: 4 }, {}],
  ["tokens", { tokens: 40 }, {}],
  ["turns, extended by an answer", { turns: 4, onExceeded: "ask" }, { turns: 1 }],
];

describe.each(places)("%s", (where, open) => {
  // A crash with a file takes longer.
  const some = where === "in a file" ? [...cases.slice(0, 1), ...cases.slice(-1)] : cases;
  test.each(some)(
    "the recorded spending of a budget of %s only grows and never exceeds the limit across crashes [I10]",
    async (kind, options, more) => {
      const place = open();
      const counting = crashAtNth(place.store, 0, "before");
      const wholly = { count: 0 };
      const whole = await finish(counting.store, options, wholly, more);
      const commits = counting.commits();
      await place.close();
      const { turns, toolCalls, tokens, extended } = sumSpent(whole.state);
      expect([turns, tokens]).toEqual([wholly.count, wholly.count * 10]);
      for (let nth = 1; nth <= commits; nth += where === "in a file" ? 5 : 1)
        for (const when of ["before", "after"] as const) {
          const there = open();
          const dying = crashAtNth(there.store, nth, when);
          const asked = { count: 0 };
          const dies = finish(dying.store, options, asked, more);
          ignoreResult(dies);
          // With parallel sub-agents a crash may change the number of commits.
          await Promise.race([dying.dead, dies]);
          const end = await finish(there.crash(), options, asked, more);
          await there.close();
          const spent = sumSpent(end.state);
          expect([nth, when, end.status, spent.extended]).toEqual([nth, when, "done", extended]);
          // The cost of a request whose reply was lost counts as spent when it was already known.
          expect([nth, when, spent.tokens - spent.turns * 10 <= 20, spent.tokens >= spent.turns * 10]).toEqual([
            nth,
            when,
            true,
            true,
          ]);
          if (kind === "tool calls") expect([nth, when, spent.toolCalls]).toEqual([nth, when, toolCalls]);
          else if (kind === "tokens") expect([nth, when, spent.tokens]).toEqual([nth, when, tokens]);
          else expect([nth, when, spent, end.ended]).toMatchObject([nth, when, { turns, toolCalls }, whole.ended]);
          // A request without a recorded reply is repeated: at most one per researcher.
          expect([nth, when, asked.count - wholly.count <= 2]).toEqual([nth, when, true]);
        }
    },
    60_000,
  );
});

/** Requests of one process before its crash. */
interface ProcessState {
  asked: number;
  isOver: boolean;
}

/** An agent, or a sub-agent, whose hooks make auxiliary model calls between the turns of the loop. */
function createAskingAgent(store: Store, life: ProcessState, isInside: boolean) {
  const counted = (model: Model): Model => ({
    ...model,
    respond: async (request, options) => {
      if (life.isOver) return new Promise(() => undefined);
      life.asked += 1;
      await waitForLoopTurn();
      return model.respond(request, options);
    },
  });
  const small = counted(scriptedModel(() => say("short", tenTokens)));
  const auxiliaryRequest = { model: small, request: { messages: [], tools: [] } };
  const notes = defineMiddleware({
    name: "notes",
    beforeAgent: async ({ ask }) => void (await ask("plan", auxiliaryRequest)),
    afterModel: async (_, { ask }) => void (await ask("look", auxiliaryRequest)) as undefined,
    afterAgent: async (_, { ask }) => void (await ask("end", auxiliaryRequest)),
  });
  // The hook runs after the hooks of the budget: their entries are durable before the reply is.
  const slow = defineMiddleware({
    name: "slow",
    inherited: true,
    onMessage: waitForLoopTurn,
    onFailedAttempt: waitForLoopTurn,
  });
  const createTalkingAgent = (asks: () => ScriptedCall) =>
    counted(
      scriptedModel(({ messages }) =>
        messages.some(({ role }) => role === "tool") ? say("done", tenTokens) : [say("", tenTokens), asks()],
      ),
    );
  const spending = [slow, budget({ tokens: 10_000 })];
  const inner = {
    name: "inner",
    model: createTalkingAgent(() => call("work", {})),
    tools: [work],
    middleware: isInside ? [notes] : [...spending, notes],
  };
  if (!isInside) return createAgent({ ...inner, store });
  return createAgent({
    name: "lead",
    model: createTalkingAgent(() => call("inner", { task: "go" })),
    tools: [agentTool(createAgent(inner), { description: "Works." })],
    middleware: spending,
    store,
  });
}

const countSpentAttempts = (state: unknown): number => {
  const { tokens, unknownAttempts } = (state as { readonly budgetSpent: { tokens: number; unknownAttempts: number } })
    .budgetSpent;
  return tokens / 10 + unknownAttempts;
};

test.each([
  ["an agent", false],
  ["a sub-agent", true],
])("every model request of %s and of its hooks counts once, wherever the process dies", async (_, isInside) => {
  const crashAndRestart = async (nth: number, when: "before" | "after") => {
    const owner = memoryStore();
    const first: ProcessState = { asked: 0, isOver: false };
    const { store, dead, commits } = crashAtNth(owner, nth, when);
    const ended = createAskingAgent(store, first, isInside).run({ thread: "t", input: "go" }).result;
    ignoreResult(ended);
    const whole = await Promise.race([dead, ended]);
    first.isOver = true;
    if (whole !== undefined) return { commits: commits(), asked: first.asked, spent: countSpentAttempts(whole.state) };
    const next = owner.peer();
    owner.crash();
    const second: ProcessState = { asked: 0, isOver: false };
    const agent = createAskingAgent(next, second, isInside);
    const hasStarted = (await next.head("t", "main")) !== undefined;
    const { state } = await (hasStarted ? agent.resume({ thread: "t" }) : agent.run({ thread: "t", input: "go" }))
      .result;
    return { commits: commits(), asked: first.asked + second.asked, spent: countSpentAttempts(state) };
  };
  const whole = await crashAndRestart(0, "before");
  expect(whole.spent).toBe(whole.asked);
  for (let nth = 1; nth <= whole.commits; nth++)
    for (const when of ["before", "after"] as const) {
      const { asked, spent } = await crashAndRestart(nth, when);
      // A request whose start was lost in the crash is unknown.
      expect([nth, when, asked - spent >= 0, asked - spent <= (when === "before" ? 1 : 0)]).toEqual([
        nth,
        when,
        true,
        true,
      ]);
    }
});
