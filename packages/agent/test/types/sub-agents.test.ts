/** Invalid sub-agents and teams do not compile, and valid ones are typed. */
import { type Agent, agentTool, createAgent, handoff, team } from "@statewright/agent";
import { defineContext, type RunHandle } from "@statewright/core";
import { scriptedModel } from "@statewright/testing";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";

const model = scriptedModel([]);
const Person = defineContext({ user: z.string() });
const Plan = defineContext({ plan: z.enum(["free", "paid"]) });
const plain = createAgent({ name: "plain", model });
const personal = createAgent({ name: "personal", model, context: Person });
const counting = createAgent({ name: "counting", model, output: z.object({ count: z.int() }) });

test("an agent tool requires a context that the calling agent has, or a function that creates the context", () => {
  const needy = agentTool(personal, { description: "x" });
  createAgent({ name: "boss", model, context: Person, tools: [needy] });
  // @ts-expect-error The agent has no user for it.
  createAgent({ name: "boss", model, context: Plan, tools: [needy] });
  const made = agentTool(personal, {
    description: "x",
    context: ({ plan }: { readonly plan: "free" | "paid" }) => ({ user: plan }),
  });
  createAgent({ name: "boss", model, context: Plan, tools: [made] });
  // @ts-expect-error What it makes is no context of the sub-agent.
  agentTool(personal, { description: "x", context: (outer: { readonly plan: string }) => ({ name: outer.plan }) });
  expect(made.name).toBe("personal");
});

test("arguments, output and end of an agent tool are typed", () => {
  agentTool(plain, {
    description: "x",
    input: z.object({ topic: z.string(), depth: z.int() }),
    prompt: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ topic: string; depth: number }>();
      return args.topic;
    },
  });
  agentTool(plain, {
    description: "x",
    prompt: (args) => {
      expectTypeOf(args.task).toEqualTypeOf<string>();
      return args.task;
    },
  });
  const tool = agentTool(counting, {
    name: "count",
    description: "x",
    output: ({ output, ended, messages }) => {
      expectTypeOf(output).toEqualTypeOf<{ count: number } | undefined>();
      expectTypeOf(ended.by).toEqualTypeOf<string>();
      return `${output?.count} ${messages.length}`;
    },
  });
  expectTypeOf(tool.name).toEqualTypeOf<"count">();
  // @ts-expect-error A description is what the calling model goes by.
  expect(() => agentTool(plain, {})).toThrow();
});

test("the type of an agent may contain the agent itself as a tool", () => {
  const self: Agent = createAgent({
    name: "self",
    model,
    tools: [agentTool((): Agent => self, { name: "again", description: "x" })],
  });
  expect(self.tools).toHaveLength(1);
});

test("the context type of a team joins those of its agents, and the start must be one of them", () => {
  const first = createAgent({ name: "first", model, context: Person, tools: [handoff("second")] });
  const second = createAgent({ name: "second", model, context: Plan, tools: [handoff(first)] });
  const both = team({ name: "both", agents: [first, second], start: "second" });
  const begin = (): RunHandle<unknown> => both.run({ input: "x", context: { user: "Ann", plan: "free" } });
  // @ts-expect-error The plan is missing.
  const runWithoutContext = (): RunHandle<unknown> => both.run({ input: "x", context: { user: "Ann" } });
  expectTypeOf(both.run).returns.toHaveProperty("result");
  expect([begin, runWithoutContext]).toHaveLength(2);
  type State = Awaited<ReturnType<typeof both.run>["result"]>["state"];
  expectTypeOf<State["activeAgent"]>().toEqualTypeOf<string>();
  // @ts-expect-error A hand-off is to an agent or its name.
  expect(() => handoff(7)).toThrow();
});
