/**
 * Program of a description. The result of a node's body depends only on the state, its input, its answers and its
 * steps.
 */
import {
  type AssistantMessage,
  approval,
  channel,
  commandTargets,
  decide,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  edit,
  fanOut,
  type Graph,
  goto,
  inputNode,
  join,
  listToolCalls,
  type Message,
  type Model,
  type NodeRuntime,
  route,
  START,
  subgraph,
  ToolError,
  toolNode,
} from "@statewright/core";
import { rejectInvalidTranscripts } from "@statewright/testing";
import * as z from "zod";
import type { ExternalWorld } from "./external-world.ts";
import { createLooseGraph, toUntyped } from "./loose-graph.ts";
import type { BlockSpec, CallSpec, NodeSpec, PartSpec, ProgramSpec, StepSpec } from "./random-program.ts";
import type { ProgramFactory } from "./simulated-program.ts";
import { toStableKey } from "./to-stable-key.ts";

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
  log: channel.list(z.string()),
  sum: channel.reduce(z.number().default(0), (sum: number, more: number) => sum + more),
  marks: channel.record(z.number()),
  last: z.string().default(""),
  flash: channel.ephemeral(z.string()),
  messages: channel.messages(),
});

const answer = z.object({ to: z.string(), value: z.number() });
const late = { answer, expiresMs: 3_600_000, onExpire: { to: "nobody", value: 7 } };

/** Nodes and edges of a graph under construction. */
interface GraphParts {
  readonly nodes: Record<string, unknown>;
  readonly edges: Record<string, unknown>;
}

/** Creates the program factory of a description, for `simulate`. */
export function createProgramFactory(spec: ProgramSpec): ProgramFactory {
  return (world) => ({
    graph: createGraph("program", spec.blocks, world),
    ...(spec.forkAt === undefined ? {} : { forkAt: spec.forkAt }),
    answer: ({ id, key, payload }, happened) => {
      const details = payload as Readonly<Record<string, unknown>>;
      if (key.endsWith("in_doubt")) return answerInDoubt(id, details, happened);
      if (key.endsWith("approve")) return { approved: details["reason"] !== "refused", reason: "decided by a person" };
      if (key.endsWith("late")) return { to: "nobody", value: 7 };
      return { to: details["id"], value: computeDigest(details["id"]) % 100 };
    },
  });
}

/** Answers an in-doubt interrupt from the log of the external world. */
function answerInDoubt(
  id: string,
  details: Readonly<Record<string, unknown>>,
  happened: ExternalWorld["findEffect"],
): object {
  const task = /([^/]+)\/start\d+:in_doubt$/.exec(id)?.[1];
  const effect = happened(
    task === undefined ? toStableKey(String(details["idempotencyKey"])) : createOnceKey(String(details["node"]), task),
  );
  if (effect === undefined) return { happened: false };
  if (task !== undefined) return { happened: true, update: effect.value };
  return id.endsWith("/step:in_doubt")
    ? { happened: true, value: effect.value }
    : { happened: true, content: effect.value };
}

function createGraph(name: string, blocks: readonly BlockSpec[], world: ExternalWorld): Graph {
  const nodes: Record<string, unknown> = {};
  const edges: Record<string, unknown> = {};
  const entries = blocks.map(getEntry);
  edges[START] = entries[0];
  blocks.forEach((block, index) => {
    addBlock(block, entries[index + 1] ?? END, { nodes, edges }, world);
  });
  return createLooseGraph(
    {
      name,
      state,
      interrupts: {
        ...(blocks.some(hasInterrupts) ? { q: answer, late } : {}),
        ...(blocks.some(hasApprovals) ? { approve: approval } : {}),
      },
    },
    nodes,
    edges,
  );
}

function hasInterrupts(block: BlockSpec): boolean {
  if (block.kind === "agent") return false;
  const parts = block.kind === "parallel" ? block.parts : [block.part];
  return parts.some((part) => part.kind === "node" && part.interrupts.length > 0);
}

/** Returns true for a block with approvals of tool calls. */
function hasApprovals(block: BlockSpec): boolean {
  return block.kind === "agent" && block.rounds.some((calls) => calls.some(({ approve }) => approve !== "no"));
}

function getEntry(block: BlockSpec): string {
  return block.kind === "part" ? block.part.name : block.name;
}

function addBlock(block: BlockSpec, next: string, parts: GraphParts, world: ExternalWorld): void {
  const { nodes, edges } = parts;
  switch (block.kind) {
    case "part":
      nodes[block.part.name] = createNode(block.part, world);
      edges[block.part.name] = next;
      return;
    case "fan": {
      const { name, items, part } = block;
      nodes[name] = () => ({ log: [name] });
      edges[name] = fanOut(part.name, ({ log }: State) =>
        Array.from({ length: items }, (_, item) => item * 10 + (log.length % 3)),
      );
      nodes[part.name] = toUntyped(inputNode)(z.number(), createBody(part, world), createPolicy(part, world));
      edges[part.name] = next;
      return;
    }
    case "parallel": {
      const { name, parts: parallelParts } = block;
      nodes[name] = () => ({ log: [name], flash: name });
      edges[name] = parallelParts.map((part) => part.name);
      const meet = `${name}Meet`;
      for (const part of parallelParts) {
        nodes[part.name] = createNode(part, world);
        edges[part.name] = join(meet);
      }
      nodes[meet] = (current: State) => ({ log: [`${meet}:${computeDigest(getVisibleState(current))}`] });
      edges[meet] = next;
      return;
    }
    case "loop": {
      const { name, part, times } = block;
      nodes[name] = () => ({ marks: {}, sum: 1, log: [`${name} begins`] });
      edges[name] = part.name;
      const back = `${name}Back`;
      nodes[part.name] = createNode(part, world);
      edges[part.name] = back;
      nodes[back] = ({ marks }: State) => ({ marks: { [back]: (marks[back] ?? 0) + 1 } });
      edges[back] = toUntyped(route)([part.name, ...(next === part.name ? [] : [next])], ({ marks }: State) =>
        (marks[back] ?? 0) < times ? part.name : next,
      );
      return;
    }
    case "goto": {
      const { name, part } = block;
      nodes[name] = (now: State) =>
        goto(computeDigest(getVisibleState(now)) % 2 === 0 ? part.name : `${name}Aside`, { log: [name] });
      edges[name] = commandTargets(part.name, `${name}Aside`);
      nodes[part.name] = createNode(part, world);
      edges[part.name] = next;
      nodes[`${name}Aside`] = () => ({ sum: 3 });
      edges[`${name}Aside`] = next;
      return;
    }
    case "agent":
      addAgent(block, next, parts, world);
  }
}

function createNode(part: PartSpec, world: ExternalWorld): unknown {
  if (part.kind === "node") return { run: createBody(part, world), ...createPolicy(part, world) };
  const { name, persistence, blocks } = part;
  return toUntyped<unknown>(subgraph)(createGraph(name, blocks, world), {
    persistence,
    input: ({ sum }: State) => ({ last: `given ${sum}` }),
    output: (out: State) => ({ log: [`${name}:${computeDigest(getVisibleState(out))}`], sum: out.sum % 5 }),
  });
}

function createPolicy(spec: NodeSpec, world: ExternalWorld): object {
  const { failures, hasErrorHandler: alwaysFails, defer, once } = spec;
  return {
    defer,
    ...(once ? { effect: "once" } : {}),
    ...(failures > 0 ? { retry: { attempts: failures + 1, initialMs: 100 } } : {}),
    ...(alwaysFails
      ? {
          onError: async (current: State, runtime: Runtime) => {
            const repaired = await runStep(
              runtime,
              { key: "repair", effect: "idempotent" },
              { current, world, mayFail: false },
            );
            return createResult(spec, current, [repaired, "handled"]);
          },
        }
      : {}),
  };
}

function createBody(spec: NodeSpec, world: ExternalWorld): (now: State, runtime: Runtime) => Promise<unknown> {
  const {
    name,
    before,
    parallelSteps: isParallel,
    interrupts: interruptKeys,
    shuffledInterrupts: isShuffled,
    after,
    failures,
    hasErrorHandler: alwaysFails,
    once,
  } = spec;
  return async (now, runtime) => {
    const { input, attempt, interrupt } = runtime;
    const values: unknown[] = [input];
    const mayFail = !alwaysFails;
    if (once) {
      const key = createOnceKey(name, runtime.run.task);
      return await world.performEffect(key, () => createUpdate(spec, now, values), { effect: "once" });
    }
    const steps = before.map((step) => () => runStep(runtime, step, { current: now, world, mayFail }));
    if (isParallel) values.push(...(await Promise.all(steps.map((step) => step()))));
    else for (const step of steps) values.push(await step());
    if (attempt <= failures && attempt % 2 === 1) throw new Error(`${name} is flaky`);
    const ask = async (key: "q" | "late", nth: number): Promise<number> => {
      const id = `${name} ${nth} ${input} ${computeDigest(getVisibleState(now))}`;
      const { to, value } = await interrupt(key, { payload: { id } });
      if (key === "q" && to !== id) throw new Error(`the interrupt of ${id} got the answer of ${to}`);
      return value;
    };
    if (isShuffled)
      values.push(
        ...(await askShuffled(interruptKeys, ask, (key) =>
          runStep(runtime, { key, effect: "pure" }, { current: now, world, mayFail: false }),
        )),
      );
    else for (const [nth, key] of interruptKeys.entries()) values.push(await ask(key, nth));
    for (const step of after) values.push(await runStep(runtime, step, { current: now, world, mayFail }));
    if (attempt <= failures) throw new Error(`${name} is flaky`);
    if (alwaysFails) throw new Error(`${name} always fails`);
    return createResult(spec, now, values);
  };
}

/** Raises the interrupts in the order in which their steps end. Returns the answers in the declared order. */
async function askShuffled(
  keys: readonly ("q" | "late")[],
  ask: (key: "q" | "late", nth: number) => Promise<number>,
  runPureStep: (key: string) => Promise<string>,
): Promise<readonly number[]> {
  const order: number[] = [];
  const runStepBefore = async (nth: number): Promise<void> => {
    await runPureStep(`before interrupt ${nth}`);
    order.push(nth);
  };
  await Promise.all(keys.map((_, nth) => runStepBefore(nth)));
  const answers = await Promise.all(order.map(async (nth) => [nth, await ask(keys[nth] ?? "q", nth)] as const));
  return answers.toSorted(([one], [other]) => one - other).map(([, value]) => value);
}

function appendLastLetter(name: string): (draft: { last: string }) => void {
  return (draft) => {
    draft.last += name.at(-1) ?? "";
  };
}

function createOnceKey(node: string, task: string): string {
  return `once node ${node} ${task}`;
}

/** Input and external world of a step. */
interface StepContext {
  readonly current: State;
  readonly world: ExternalWorld;
  readonly mayFail: boolean;
}

function runStep(
  { step }: Runtime,
  { key, effect }: StepSpec,
  { current, world, mayFail }: StepContext,
): Promise<string> {
  return step(
    key,
    ({ idempotencyKey }) =>
      world.performEffect(toStableKey(idempotencyKey), () => `${key}:${computeDigest(getVisibleState(current))}`, {
        effect,
        mayFail: mayFail && effect !== "once",
      }),
    { effect },
  );
}

function createUpdate({ name }: NodeSpec, current: State, values: readonly unknown[]): object {
  const chance = computeDigest([name, getVisibleState(current), values]);
  return { log: [`${name}:${chance}`], sum: chance % 7, marks: { [`k${chance % 3}`]: chance % 11 } };
}

function createResult(spec: NodeSpec, current: State, values: readonly unknown[]): unknown {
  const plain = createUpdate(spec, current, values);
  switch (spec.writes) {
    case "log":
      return plain;
    case "draft":
      return [plain, { flash: spec.name }, edit(appendLastLetter(spec.name))];
    case "again":
      return [plain, { log: [`${spec.name} again`], sum: 1 }];
  }
}

function addAgent(
  { name, rounds, strategy }: Extract<BlockSpec, { kind: "agent" }>,
  next: string,
  { nodes, edges }: GraphParts,
  world: ExternalWorld,
): void {
  const modelNode = `${name}Model`;
  const toolsNode = `${name}Tools`;
  const model: Model = rejectInvalidTranscripts({
    id: name,
    respond: async ({ messages: transcript }) => {
      const turnStart = transcript.findLastIndex(({ role }) => role === "user");
      const replyCount = transcript.slice(turnStart).filter(({ role }) => role === "assistant").length;
      const key = `model ${name} ${computeDigest(transcript)}`;
      await world.performEffect(key, () => null, { effect: "pure" });
      const calls = rounds[replyCount];
      if (calls === undefined) return { content: [{ type: "text", text: `${name} is done` }], finish: "stop" };
      return {
        content: calls.map((call, index) => ({
          type: "call",
          id: `${name}_${turnStart}_${replyCount}_${index}`,
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
  edges[name] = modelNode;
  nodes[modelNode] = async (current: State, runtime: Runtime) => ({
    messages: [await runtime.model({ model, request: { messages: current.messages, tools: [] } })],
  });
  edges[modelNode] = toUntyped(route)([toolsNode, next], ({ messages }: State) =>
    listToolCalls(messages[messages.length - 1] as AssistantMessage).length > 0 ? toolsNode : next,
  );
  const used = new Set(rounds.flatMap((calls) => calls.map(({ tool }) => tool)));
  const approvalMiddleware = defineMiddleware({
    name: "approval",
    beforeTool: ({ call }) => {
      const { approve } = call.args as { readonly approve: CallSpec["approve"] };
      return approve === "no" ? undefined : decide.interrupt(call, approve);
    },
  });
  nodes[toolsNode] = toolNode({
    tools: [...used].map((tool) => createTool(tool, world)),
    strategy,
    middleware: rounds.some((calls) => calls.some(({ approve }) => approve !== "no")) ? [approvalMiddleware] : [],
  });
  edges[toolsNode] = modelNode;
}

const args = z.object({ approve: z.string(), nth: z.number() });

function createTool(kind: CallSpec["tool"], world: ExternalWorld) {
  const effect = kind === "asked" ? "once" : kind === "flaky" || kind === "writer" ? "idempotent" : kind;
  return defineTool({
    name: kind,
    description: `A tool of the kind ${kind}.`,
    input: args,
    effect,
    ...(kind === "flaky" ? { retry: { attempts: 3, on: ["unavailable"], initialMs: 50 } } : {}),
    ...(kind === "asked"
      ? { reconcile: (_: unknown, { idempotencyKey }) => world.findEffect(toStableKey(idempotencyKey))?.value }
      : {}),
    run: async ({ nth }, { idempotencyKey, attempt }) => {
      if (kind === "flaky" && attempt <= nth) throw ToolError.unavailable("not yet");
      const text = await world.performEffect(toStableKey(idempotencyKey), () => `did ${toStableKey(idempotencyKey)}`, {
        effect,
      });
      if (kind !== "writer") return text;
      return { content: text, command: { update: { log: [text], sum: 2 } } };
    },
  });
}

/** Returns the deterministic part of the state, as the input of bodies. */
function getVisibleState({ log, sum, marks, last, flash, messages: transcript }: State): unknown {
  return [log.length, log.slice(-3), sum, marks, last, flash, transcript.length];
}

/** Returns a deterministic hash of a value. */
function computeDigest(value: unknown): number {
  let mixed = 2_166_136_261;
  for (const letter of JSON.stringify(value) ?? "") mixed = Math.imul(mixed ^ letter.charCodeAt(0), 16_777_619);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
