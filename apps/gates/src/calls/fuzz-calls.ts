/**
 * `calls`: hostile calls of a sound tool. No invalid call may reach the tool's body, and each call gets one result
 * under its own id.
 */
import { isDeepStrictEqual } from "node:util";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  getMessageText,
  inject,
  listToolCalls,
  type Message,
  type Model,
  route,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { type Chance, createChance, rejectInvalidTranscripts } from "@statewright/testing";
import * as z from "zod";
import { createHostileCall, type HostileCall } from "./hostile-call.ts";

/** Result of a series of seeds. */
export interface CallsReport {
  readonly calls: number;
  readonly ran: number;
  readonly kinds: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const input = z.strictObject({
  // Linear pattern, checked only for texts within the length limit.
  sku: z
    .string()
    .max(20)
    .regex(/^[A-Z]{2}-[0-9]+$/),
  count: z.int().min(1).max(1_000),
  tags: z.array(z.string()).max(5).optional(),
  options: z.strictObject({ gift: z.boolean() }).optional(),
});
const Shop = defineContext({ customer: z.string() });
const Chat = defineState({ messages: channel.messages() });
const callsPerMessage = 20;

/** Sends `count` hostile calls, in messages of twenty calls; each message has its own seed. */
export async function fuzzCalls(count: number, from = 0): Promise<CallsReport> {
  const sums = { calls: 0, ran: 0, kinds: {} as Record<string, number>, violations: [] as string[] };
  for (let seed = from; sums.calls < count; seed++) {
    const chance = createChance(seed);
    const calls = Array.from({ length: callsPerMessage }, (_, index) => createHostileCall(chance, index));
    for (const { kind } of calls) sums.kinds[kind] = (sums.kinds[kind] ?? 0) + 1;
    const { ran, violations } = await runMessage(chance, calls);
    sums.calls += calls.length;
    sums.ran += ran;
    for (const violation of violations) sums.violations.push(`seed ${seed}: ${violation}`);
  }
  return sums;
}

async function runMessage(
  chance: Chance,
  calls: readonly HostileCall[],
): Promise<{ readonly ran: number; readonly violations: readonly string[] }> {
  const violations: string[] = [];
  const received: unknown[] = [];
  const order = defineTool({
    name: "order",
    description: "Order something.",
    input,
    inject: {
      customer: Shop.from(({ customer }) => customer),
      key: inject.secret("KEY"),
      made: inject.custom(() => "made"),
    },
    effect: "pure",
    run: (args, { injected }) => {
      received.push(args);
      if (injected.customer !== "real" || injected.key.reveal() !== "the-real-key")
        violations.push("a forged injected value reached the tool");
      if (!isDeepStrictEqual(input.parse(args), args))
        violations.push(`the tool got invalid arguments: ${JSON.stringify(args)}`);
      return "ordered";
    },
  });
  const model: Model = rejectInvalidTranscripts({
    id: "hostile",
    respond: async ({ messages: all }) =>
      all.some(({ role }) => role === "tool")
        ? { content: [{ type: "text", text: "I see" }], finish: "stop" }
        : { content: calls.map(({ block }) => block), finish: "calls" },
  });
  const node = toolNode({ tools: [order], strategy: chance.flip(0.5) ? "parallel" : "sequential" });
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
    if (end.status !== "done") violations.push(`expected a run with status done, got ${end.status}`);
  } catch (error) {
    violations.push(`the run failed: ${error instanceof Error ? error.message : String(error)}`);
  }
  const answers = all.filter((message) => message.role === "tool");
  if (answers.length !== calls.length) violations.push(`expected ${calls.length} tool results, got ${answers.length}`);
  for (const [index, { kind, mayRun }] of calls.entries()) {
    const answer = answers[index];
    if (answer === undefined) continue;
    if (answer.isError === mayRun)
      violations.push(`unexpected result of the call "${kind}": ${getMessageText(answer).slice(0, 200)}`);
    if (JSON.stringify(answer).length > 20_000)
      violations.push(`the result of the call "${kind}" has ${JSON.stringify(answer).length} characters`);
    if (getMessageText(answer).includes("the-real-key"))
      violations.push(`the result of the call "${kind}" contains the secret`);
  }
  if (received.length !== calls.filter(({ mayRun }) => mayRun).length)
    violations.push(`the tool ran ${received.length} times`);
  if (Reflect.has({}, "polluted")) violations.push("the prototype of Object was changed");
  return { ran: received.length, violations };
}

function hasCalls(message: Message | undefined): boolean {
  return message?.role === "assistant" && listToolCalls(message).length > 0;
}
