/** The program that a description stands for. What a body returns depends on the state, its input, its answers and its steps, and on nothing else. */
import {
  type AssistantMessage,
  approval,
  callsOf,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  ephemeral,
  type Graph,
  goto,
  gotos,
  interruptFor,
  join,
  list,
  type Message,
  type Model,
  messages,
  type NodeRuntime,
  record,
  reduce,
  route,
  START,
  sends,
  subgraph,
  ToolError,
  task,
  toolNode,
  update,
} from "@statewright/core";
import { modelThatRefusesBadTranscripts, type Outside, type ProgramOf } from "@statewright/testing";
import * as z from "zod";
import { loose, looseGraph } from "./loose-graph.ts";
import type { BlockSpec, CallSpec, NodeSpec, PartSpec, ProgramSpec, StepSpec } from "./random-program.ts";

interface State {
  readonly log: readonly string[];
  readonly sum: number;
  readonly marks: Readonly<Record<string, number>>;
  readonly last: string;
  readonly flash?: string | undefined;
  readonly messages: readonly Message[];
}

type Runtime = NodeRuntime<unknown, { readonly q: typeof answer; readonly late: typeof answer }> & {
  readonly input?: unknown;
};

const state = defineState({
  log: list(z.string()),
  sum: reduce(z.number().default(0), (sum: number, more: number) => sum + more),
  marks: record(z.number()),
  last: z.string().default(""),
  flash: ephemeral(z.string()),
  messages: messages(),
});

const answer = z.object({ to: z.string(), value: z.number() });
const late = { answer, expiresMs: 3_600_000, onExpire: { to: "nobody", value: 7 } };

/** The program of a description, for `simulate`. */
export function programOf(spec: ProgramSpec): ProgramOf {
  return (outside) => ({
    graph: graphOf("program", spec.blocks, outside),
    ...(spec.forkAt === undefined ? {} : { forkAt: spec.forkAt }),
    answer: ({ id, key, payload }, happened) => {
      const asked = payload as Readonly<Record<string, unknown>>;
      if (key.endsWith("in_doubt")) return inDoubt(id, asked, happened);
      if (key.endsWith("approve")) return { approved: asked["reason"] !== "refused", reason: "a person says so" };
      if (key.endsWith("late")) return { to: "nobody", value: 7 };
      return { to: asked["id"], value: digest(asked["id"]) % 100 };
    },
  });
}

/** What a person finds out who looks at the other side. */
function inDoubt(id: string, asked: Readonly<Record<string, unknown>>, happened: Outside["happened"]): object {
  const task = /([^/]+)\/start\d+:in_doubt$/.exec(id)?.[1];
  const found = happened(task === undefined ? String(asked["idempotencyKey"]) : onceKey(String(asked["node"]), task));
  if (found === undefined) return { happened: false };
  return task === undefined ? { happened: true, content: found.value } : { happened: true, update: found.value };
}

function graphOf(name: string, blocks: readonly BlockSpec[], outside: Outside): Graph {
  const nodes: Record<string, unknown> = {};
  const edges: Record<string, unknown> = {};
  const entries = blocks.map(entryOf);
  edges[START] = entries[0];
  blocks.forEach((block, index) => {
    addBlock(block, entries[index + 1] ?? END, nodes, edges, outside);
  });
  return looseGraph(
    {
      name,
      state,
      interrupts: {
        ...(blocks.some(asks) ? { q: answer, late } : {}),
        ...(blocks.some(isApproved) ? { approve: approval } : {}),
      },
    },
    nodes,
    edges,
  );
}

function asks(block: BlockSpec): boolean {
  if (block.kind === "agent") return false;
  const parts = block.kind === "parallel" ? block.parts : [block.part];
  return parts.some((part) => part.kind === "node" && part.asks.length > 0);
}

/** Whether people are asked about calls. */
function isApproved(block: BlockSpec): boolean {
  return block.kind === "agent" && block.rounds.some((calls) => calls.some(({ approve }) => approve !== "no"));
}

function entryOf(block: BlockSpec): string {
  return block.kind === "part" ? block.part.name : block.name;
}

function addBlock(
  block: BlockSpec,
  next: string,
  nodes: Record<string, unknown>,
  edges: Record<string, unknown>,
  outside: Outside,
): void {
  switch (block.kind) {
    case "part":
      nodes[block.part.name] = nodeOf(block.part, outside);
      edges[block.part.name] = next;
      return;
    case "fan": {
      const { name, items, part } = block;
      nodes[name] = () => ({ log: [name] });
      edges[name] = sends(part.name, ({ log }: State) =>
        Array.from({ length: items }, (_, item) => item * 10 + (log.length % 3)),
      );
      nodes[part.name] = loose(task)(z.number(), bodyOf(part, outside), policyOf(part, outside));
      edges[part.name] = next;
      return;
    }
    case "parallel": {
      const { name, parts } = block;
      nodes[name] = () => ({ log: [name], flash: name });
      edges[name] = parts.map((part) => part.name);
      const meet = `${name}Meet`;
      for (const part of parts) {
        nodes[part.name] = nodeOf(part, outside);
        edges[part.name] = join(meet);
      }
      nodes[meet] = (now: State) => ({ log: [`${meet}:${digest(seen(now))}`] });
      edges[meet] = next;
      return;
    }
    case "loop": {
      const { name, part, times } = block;
      nodes[name] = () => ({ marks: {}, sum: 1, log: [`${name} begins`] });
      edges[name] = part.name;
      const back = `${name}Back`;
      nodes[part.name] = nodeOf(part, outside);
      edges[part.name] = back;
      nodes[back] = ({ marks }: State) => ({ marks: { [back]: (marks[back] ?? 0) + 1 } });
      edges[back] = loose(route)([part.name, ...(next === part.name ? [] : [next])], ({ marks }: State) =>
        (marks[back] ?? 0) < times ? part.name : next,
      );
      return;
    }
    case "goto": {
      const { name, part } = block;
      nodes[name] = (now: State) => goto(digest(seen(now)) % 2 === 0 ? part.name : `${name}Aside`, { log: [name] });
      edges[name] = gotos(part.name, `${name}Aside`);
      nodes[part.name] = nodeOf(part, outside);
      edges[part.name] = next;
      nodes[`${name}Aside`] = () => ({ sum: 3 });
      edges[`${name}Aside`] = next;
      return;
    }
    case "agent":
      addAgent(block, next, nodes, edges, outside);
  }
}

function nodeOf(part: PartSpec, outside: Outside): unknown {
  if (part.kind === "node") return { run: bodyOf(part, outside), ...policyOf(part, outside) };
  const { name, persistence, blocks } = part;
  return loose<unknown>(subgraph)(graphOf(name, blocks, outside), {
    persistence,
    input: ({ sum }: State) => ({ last: `given ${sum}` }),
    output: (out: State) => ({ log: [`${name}:${digest(seen(out))}`], sum: out.sum % 5 }),
  });
}

function policyOf(spec: NodeSpec, outside: Outside): object {
  const { failures, handled, defer, once } = spec;
  return {
    defer,
    ...(once ? { effect: "once" } : {}),
    ...(failures > 0 ? { retry: { attempts: failures + 1, initialMs: 100 } } : {}),
    ...(handled
      ? {
          onError: async (now: State, runtime: Runtime) => {
            const mended = await runStep(runtime, { key: "mend", effect: "idempotent" }, now, outside, false);
            return written(spec, now, [mended, "handled"]);
          },
        }
      : {}),
  };
}

function bodyOf(spec: NodeSpec, outside: Outside): (now: State, runtime: Runtime) => Promise<unknown> {
  const { name, before, atOnce, asks, asksApart, after, failures, handled, once } = spec;
  return async (now, runtime) => {
    const { input, attempt, interrupt } = runtime;
    const said: unknown[] = [input];
    const mayFail = !handled;
    if (once) {
      const key = onceKey(name, runtime.run.task);
      return await outside.act(key, () => plainUpdate(spec, now, said), { effect: "once" });
    }
    const steps = before.map((step) => () => runStep(runtime, step, now, outside, mayFail));
    if (atOnce) said.push(...(await Promise.all(steps.map((step) => step()))));
    else for (const step of steps) said.push(await step());
    if (attempt <= failures && attempt % 2 === 1) throw new Error(`${name} is flaky`);
    const ask = async (key: "q" | "late", nth: number): Promise<number> => {
      const id = `${name} ${nth} ${input} ${digest(seen(now))}`;
      const { to, value } = await interrupt(key, { payload: { id } });
      if (key === "q" && to !== id) throw new Error(`the answer to ${to} was given to ${id}`);
      return value;
    };
    if (asksApart) said.push(...(await asked(asks, runtime, now, outside, ask)));
    else for (const [nth, key] of asks.entries()) said.push(await ask(key, nth));
    for (const step of after) said.push(await runStep(runtime, step, now, outside, mayFail));
    if (attempt <= failures) throw new Error(`${name} is flaky`);
    if (handled) throw new Error(`${name} always fails`);
    return written(spec, now, said);
  };
}

/** Answers in the order of the questions, which are asked in another. */
async function asked(
  keys: readonly ("q" | "late")[],
  runtime: Runtime,
  now: State,
  outside: Outside,
  ask: (key: "q" | "late", nth: number) => Promise<number>,
): Promise<readonly number[]> {
  const order: number[] = [];
  const before = async (nth: number): Promise<void> => {
    await runStep(runtime, { key: `before question ${nth}`, effect: "pure" }, now, outside, false);
    order.push(nth);
  };
  await Promise.all(keys.map((_, nth) => before(nth)));
  const answers = await Promise.all(order.map(async (nth) => [nth, await ask(keys[nth] ?? "q", nth)] as const));
  return answers.toSorted(([one], [other]) => one - other).map(([, value]) => value);
}

function withLast(name: string): (draft: { last: string }) => void {
  return (draft) => {
    draft.last += name.at(-1) ?? "";
  };
}

function onceKey(node: string, task: string): string {
  return `once node ${node} ${task}`;
}

function runStep(
  { step }: Runtime,
  { key, effect }: StepSpec,
  now: State,
  outside: Outside,
  mayFail: boolean,
): Promise<string> {
  return step(
    key,
    ({ idempotencyKey }) =>
      outside.act(idempotencyKey, () => `${key}:${digest(seen(now))}`, {
        effect,
        mayFail: mayFail && effect !== "once",
      }),
    { effect },
  );
}

function plainUpdate({ name }: NodeSpec, now: State, said: readonly unknown[]): object {
  const chance = digest([name, seen(now), said]);
  return { log: [`${name}:${chance}`], sum: chance % 7, marks: { [`k${chance % 3}`]: chance % 11 } };
}

function written(spec: NodeSpec, now: State, said: readonly unknown[]): unknown {
  const plain = plainUpdate(spec, now, said);
  switch (spec.writes) {
    case "log":
      return plain;
    case "draft":
      return [plain, { flash: spec.name }, update(withLast(spec.name))];
    case "again":
      return [plain, { log: [`${spec.name} again`], sum: 1 }];
  }
}

function addAgent(
  { name, rounds, strategy }: Extract<BlockSpec, { kind: "agent" }>,
  next: string,
  nodes: Record<string, unknown>,
  edges: Record<string, unknown>,
  outside: Outside,
): void {
  const asking = `${name}Model`;
  const tools = `${name}Tools`;
  const model: Model = modelThatRefusesBadTranscripts({
    id: name,
    respond: async ({ messages: said }) => {
      const begun = said.findLastIndex(({ role }) => role === "user");
      const spoken = said.slice(begun).filter(({ role }) => role === "assistant").length;
      const key = `model ${name} ${digest(said)}`;
      await outside.act(key, () => null, { effect: "pure" });
      const calls = rounds[spoken];
      if (calls === undefined) return { content: [{ type: "text", text: `${name} is done` }], finish: "stop" };
      return {
        content: calls.map((call, index) => ({
          type: "call",
          id: `${name}_${begun}_${spoken}_${index}`,
          name: call.tool,
          args: { approve: call.approve, nth: index },
        })),
        finish: "calls",
      };
    },
  });
  nodes[name] = ({ sum }: State) => ({
    messages: [{ role: "user", id: `${name}:${sum}`, content: [{ type: "text", text: `begin ${sum}` }] }],
  });
  edges[name] = asking;
  nodes[asking] = async (now: State, runtime: Runtime) => ({
    messages: [await runtime.model({ model, request: { messages: now.messages, tools: [] } })],
  });
  edges[asking] = loose(route)([tools, next], ({ messages: said }: State) =>
    callsOf(said[said.length - 1] as AssistantMessage).length > 0 ? tools : next,
  );
  const used = new Set(rounds.flatMap((calls) => calls.map(({ tool }) => tool)));
  const approving = defineMiddleware({
    name: "approval",
    beforeTool: ({ call }) => {
      const { approve } = call.args as { readonly approve: CallSpec["approve"] };
      return approve === "no" ? undefined : interruptFor(call, approve);
    },
  });
  nodes[tools] = toolNode({
    tools: [...used].map((tool) => toolOf(tool, outside)),
    strategy,
    middleware: rounds.some((calls) => calls.some(({ approve }) => approve !== "no")) ? [approving] : [],
  });
  edges[tools] = asking;
}

const args = z.object({ approve: z.string(), nth: z.number() });

function toolOf(kind: CallSpec["tool"], outside: Outside) {
  const effect = kind === "asked" ? "once" : kind === "flaky" || kind === "writer" ? "idempotent" : kind;
  return defineTool({
    name: kind,
    description: `A tool of the kind ${kind}.`,
    input: args,
    effect,
    ...(kind === "flaky" ? { retry: { attempts: 3, on: ["unavailable"], initialMs: 50 } } : {}),
    ...(kind === "asked"
      ? { reconcile: (_: unknown, { idempotencyKey }) => outside.happened(idempotencyKey)?.value }
      : {}),
    run: async ({ nth }, { idempotencyKey, attempt }) => {
      if (kind === "flaky" && attempt <= nth) throw ToolError.unavailable("not yet");
      const text = await outside.act(idempotencyKey, () => `did ${idempotencyKey}`, { effect });
      if (kind !== "writer") return text;
      return { content: text, command: { update: { log: [text], sum: 2 } } };
    },
  });
}

/** What a body looks at: nothing that differs from one run to the next. */
function seen({ log, sum, marks, last, flash, messages: said }: State): unknown {
  return [log.length, log.slice(-3), sum, marks, last, flash, said.length];
}

/** A number that depends on everything it is given, and on nothing else. */
function digest(value: unknown): number {
  let mixed = 2_166_136_261;
  for (const letter of JSON.stringify(value) ?? "") mixed = Math.imul(mixed ^ letter.charCodeAt(0), 16_777_619);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
