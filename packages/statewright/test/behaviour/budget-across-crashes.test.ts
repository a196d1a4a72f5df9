/** A budget of an agent and its sub-agents, whose process dies at each of its commits: what was spent is neither lost nor counted twice. */
import { call, modelThatRefusesBadTranscripts, say, scriptedModel } from "@statewright/testing";
import { agentTool, type BudgetOptions, budget, createAgent, defineTool, type Store } from "statewright";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { diesAt, leftToDie, places } from "../support/both-stores.ts";

const work = defineTool({
  name: "work",
  description: "Works.",
  input: z.object({}),
  effect: "pure",
  run: async () => {
    await turnOfTheLoop();
    return "worked";
  },
});

/** What stands around an effect is written on its own when the event loop turns inside it. */
const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Spent {
  readonly turns: number;
  readonly toolCalls: number;
  readonly tokens: number;
  readonly extended: object;
}
const spentIn = (state: unknown): Spent => (state as { readonly budgetSpent: Spent }).budgetSpent;

const tenTokens = { usage: { inputTokens: 10, outputTokens: 0 } };

/** A lead, and two researchers at work side by side. `asked` counts the requests of this process. */
function team(store: Store, options: BudgetOptions, asked: { count: number }) {
  const wait = {
    name: "wait",
    aroundModel: async (request: never, next: (request: never) => Promise<never>) => {
      asked.count += 1;
      await turnOfTheLoop();
      return next(request);
    },
  };
  const researcher = createAgent({
    name: "researcher",
    model: modelThatRefusesBadTranscripts(
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
    model: modelThatRefusesBadTranscripts(
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

/** Bring the thread to its end; every question is answered with `more`. */
async function finish(store: Store, options: BudgetOptions, asked: { count: number }, more: object) {
  const agent = team(store, options, asked);
  const begun = (await store.head("t", "main")) !== undefined;
  let result = begun
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
  ["turns, extended by a person", { turns: 4, onExceeded: "ask" }, { turns: 1 }],
];

describe.each(places)("%s", (where, open) => {
  // A death in a file takes longer.
  const some = where === "in a file" ? [...cases.slice(0, 1), ...cases.slice(-1)] : cases;
  test.each(some)(
    "I10 what a budget of %s has spent only grows, and is never more than it may be",
    async (kind, options, more) => {
      const place = open();
      let commits = 0;
      const counting = diesAt(
        place.store,
        () => {
          commits += 1;
          return false;
        },
        "before",
      ).store;
      const wholly = { count: 0 };
      const whole = await finish(counting, options, wholly, more);
      place.close();
      const { turns, toolCalls, tokens, extended } = spentIn(whole.state);
      expect([turns, tokens]).toEqual([wholly.count, wholly.count * 10]);
      for (let nth = 1; nth <= commits; nth += where === "in a file" ? 5 : 1)
        for (const when of ["before", "after"] as const) {
          const there = open();
          let seen = 0;
          const dying = diesAt(
            there.store,
            () => {
              seen += 1;
              return seen === nth;
            },
            when,
          );
          const asked = { count: 0 };
          const dies = finish(dying.store, options, asked, more);
          leftToDie(dies);
          // With sub-agents side by side a death may leave fewer commits than there were.
          await Promise.race([dying.dead, dies]);
          const end = await finish(there.crash(), options, asked, more);
          there.close();
          const spent = spentIn(end.state);
          expect([nth, when, end.status, spent.extended]).toEqual([nth, when, "done", extended]);
          // What a request cost whose answer was lost is spent, where it was known already.
          expect([nth, when, spent.tokens - spent.turns * 10 <= 20, spent.tokens >= spent.turns * 10]).toEqual([
            nth,
            when,
            true,
            true,
          ]);
          if (kind === "tool calls") expect([nth, when, spent.toolCalls]).toEqual([nth, when, toolCalls]);
          else if (kind === "tokens") expect([nth, when, spent.tokens]).toEqual([nth, when, tokens]);
          else expect([nth, when, spent, end.ended]).toMatchObject([nth, when, { turns, toolCalls }, whole.ended]);
          // A request whose answer was not recorded is made again: at most those of both researchers.
          expect([nth, when, asked.count - wholly.count <= 2]).toEqual([nth, when, true]);
        }
    },
    60_000,
  );
});
