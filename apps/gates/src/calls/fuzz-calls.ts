/** `calls`: hostile calls against a sound tool. None reaches its body that does not fit, each is answered once, under its own id. */
import { isDeepStrictEqual } from "node:util";
import {
  callsOf,
  custom,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  type Model,
  messages,
  route,
  run,
  START,
  secret,
  textOf,
  toolNode,
} from "@statewright/core";
import { type Chance, chanceOf, modelThatRefusesBadTranscripts } from "@statewright/testing";
import * as z from "zod";
import { type HostileCall, hostileCall } from "./hostile-call.ts";

/** What some seeds came to. */
export interface CallsReport {
  readonly calls: number;
  readonly ran: number;
  readonly ways: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const input = z.strictObject({
  // Linear, and asked only when the length fits.
  sku: z
    .string()
    .max(20)
    .regex(/^[A-Z]{2}-[0-9]+$/),
  count: z.int().min(1).max(1_000),
  tags: z.array(z.string()).max(5).optional(),
  options: z.strictObject({ gift: z.boolean() }).optional(),
});
const Shop = defineContext({ customer: z.string() });
const Chat = defineState({ messages: messages() });
const callsInAMessage = 20;

/** Send so many hostile calls, in messages of twenty; a message is a seed. */
export async function fuzzCalls(count: number, from = 0): Promise<CallsReport> {
  const sums = { calls: 0, ran: 0, ways: {} as Record<string, number>, violations: [] as string[] };
  for (let seed = from; sums.calls < count; seed++) {
    const chance = chanceOf(seed);
    const calls = Array.from({ length: callsInAMessage }, (_, index) => hostileCall(chance, index));
    for (const { how } of calls) sums.ways[how] = (sums.ways[how] ?? 0) + 1;
    const { ran, violations } = await answered(chance, calls);
    sums.calls += calls.length;
    sums.ran += ran;
    for (const violation of violations) sums.violations.push(`seed ${seed}: ${violation}`);
  }
  return sums;
}

async function answered(
  chance: Chance,
  calls: readonly HostileCall[],
): Promise<{ readonly ran: number; readonly violations: readonly string[] }> {
  const violations: string[] = [];
  const reached: unknown[] = [];
  const order = defineTool({
    name: "order",
    description: "Order something.",
    input,
    inject: { customer: Shop.from(({ customer }) => customer), key: secret("KEY"), made: custom(() => "made") },
    effect: "pure",
    run: (args, { injected }) => {
      reached.push(args);
      if (injected.customer !== "real" || injected.key.reveal() !== "the-real-key")
        violations.push("a forged value reached the body");
      if (!isDeepStrictEqual(input.parse(args), args)) violations.push(`the body got ${JSON.stringify(args)}`);
      return "ordered";
    },
  });
  const model: Model = modelThatRefusesBadTranscripts({
    id: "hostile",
    respond: async ({ messages: all }) =>
      all.some(({ role }) => role === "tool")
        ? { content: [{ type: "text", text: "I see" }], finish: "stop" }
        : { content: calls.map(({ block }) => block), finish: "calls" },
  });
  const node = toolNode({ tools: [order], strategy: chance.share(0.5) ? "parallel" : "sequential" });
  const graph = defineGraph({ name: "fuzz", state: Chat, context: Shop })
    .nodes({
      model: async (state, runtime) => ({
        messages: [
          await runtime.model({ model, request: { messages: state.messages, tools: node.registry.forModel() } }),
        ],
      }),
      tools: node,
    })
    .edges({
      [START]: "model",
      model: route(["tools", END], (state) => (hasCalls(state.messages.at(-1)) ? "tools" : END)),
      tools: "model",
    });
  const options = { context: { customer: "real" }, secrets: { get: () => "the-real-key" } };
  let all: readonly Message[] = [];
  try {
    const end = await run(graph, {
      ...options,
      input: { messages: [{ role: "user", id: "u", content: [{ type: "text", text: "go" }] }] },
    }).result;
    all = end.state.messages;
    if (end.status !== "done") violations.push(`the run is ${end.status}`);
  } catch (error) {
    violations.push(`the run failed: ${error instanceof Error ? error.message : String(error)}`);
  }
  const answers = all.filter((message) => message.role === "tool");
  if (answers.length !== calls.length) violations.push(`${answers.length} answers to ${calls.length} calls`);
  for (const [index, { how, mayRun }] of calls.entries()) {
    const answer = answers[index];
    if (answer === undefined) continue;
    if (answer.isError === mayRun)
      violations.push(`a call that ${how} was answered with ${textOf(answer).slice(0, 200)}`);
    if (JSON.stringify(answer).length > 20_000)
      violations.push(`the answer to a call that ${how} has ${JSON.stringify(answer).length} characters`);
    if (textOf(answer).includes("the-real-key")) violations.push(`the answer to a call that ${how} holds the secret`);
  }
  if (reached.length !== calls.filter(({ mayRun }) => mayRun).length)
    violations.push(`the body ran ${reached.length} times`);
  if (Reflect.has({}, "polluted")) violations.push("the prototype of objects was changed");
  return { ran: reached.length, violations };
}

function hasCalls(message: Message | undefined): boolean {
  return message?.role === "assistant" && callsOf(message).length > 0;
}
