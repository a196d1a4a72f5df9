import { call, say, scriptedModel } from "@statewright/testing";
import { checkGraph, defineGraph, defineState, defineTool, END, memoryStore, run, START } from "statewright";
import { type BudgetInterrupt, budget } from "statewright/middleware";
import { expect, test } from "vitest";
import * as z from "zod";
import { counted, extended, limited, paid, short, team } from "./budgets.ts";

const sort = defineTool({
  name: "sort",
  description: "Sorts.",
  input: z.object({}),
  effect: "pure",
  run: () => "sorted",
});
const usage = { inputTokens: 500_000, outputTokens: 100_000 };

test("the agent of the budgets page ends at its limit", async () => {
  const createEndlessModel = () => scriptedModel(() => call(sort, {}));
  const { ended, state } = await limited(createEndlessModel(), [sort]).run({ thread: "t", input: "go" }).result;
  expect(ended).toEqual({ by: "budget", reason: "the budget of 20 turns is exhausted" });
  expect(state).toMatchObject({ budgetSpent: { turns: 20, toolCalls: 20 } });
  const second = await short(createEndlessModel(), [sort]).run({ thread: "t", input: "go" }).result;
  expect(second.ended?.by).toBe("maxTurns");
});

test("the cost limit of the budgets page is extended or ended by an answer", async () => {
  const createExpensiveModel = () => {
    const model = scriptedModel([
      [say("", { usage }), call(sort, {})],
      [say("", { usage }), call(sort, {})],
      say("done"),
    ]);
    return { ...model, id: "anthropic/claude-sonnet-4-5" };
  };
  const shown: BudgetInterrupt[] = [];
  const answer = (yes: boolean) => (question: BudgetInterrupt) => {
    shown.push(question);
    return yes;
  };
  const store = memoryStore();
  const refused = await extended(paid(createExpensiveModel(), [sort]), store, answer(false));
  expect(refused).toMatchObject({ ended: { by: "money", reason: "the budget of a cost of 2.5 is exhausted" } });
  expect(shown).toMatchObject([{ exceeded: "cost", per: "thread", spent: { cost: 3 } }]);
  const other = await extended(paid(createExpensiveModel(), [sort]), memoryStore(), answer(true));
  expect(other).toMatchObject({ status: "waiting" });
});

test("the team of the budgets page spends from one budget", async () => {
  const lead = scriptedModel([call("research", { task: "one" }), say("summed up")]);
  const { state, ended } = await team(lead, scriptedModel([say("found")])).run({ thread: "t", input: "go" }).result;
  expect(ended).toEqual({ by: "answer" });
  expect(state).toMatchObject({ budgetSpent: { turns: 3 } });
});

test("the spending of a budget is a state channel", async () => {
  expect(await counted(scriptedModel([call(sort, {}), say("done")]), [sort])).toBe(2);
});

test("a custom graph with a budget keeps its typed state, has a spending channel and passes checkGraph", async () => {
  const mine = budget({ name: "mine", turns: 2, onExceeded: "ask" });
  const Mail = defineState({ sorted: z.number().default(0) });
  const graph = defineGraph({
    name: "mail",
    state: defineState({ ...Mail.channels, ...mine.channels }),
    interrupts: { ...mine.interrupts },
    middleware: [mine],
  })
    .nodes({ sort: ({ sorted }) => ({ sorted: sorted + 1 }) })
    .edges({ [START]: "sort", sort: END });
  const { state } = await run(graph, {}).result;
  expect([state.sorted.toFixed(), state.mineSpent.turns]).toEqual(["1", 0]);
  expect(checkGraph(graph).violations).toEqual([]);
});
