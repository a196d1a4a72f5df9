/**
 * The structural check: whether what a thread has pending still has its place in a graph that has changed since (rule E50).
 * Pure: what was read stands in the {@link Stand}, and nothing is changed.
 */
import type { AnyStateNode } from "xstate";
import { describeThrown, isStatewrightError, saidBy } from "../../base/errors.ts";
import { issuesText, parseWith } from "../../base/schema.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { Message } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import { parseArgs, preparedArgs } from "../../tool/arguments/parse-args.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { payloadSchema } from "../../tool/policy/interrupt.ts";
import { askedBy, declaredQuestion, schemaOfAnswer } from "../conversation/interrupt-schema.ts";
import { openCalls } from "../conversation/pending-calls.ts";
import { restore } from "../machine/actor-tree.ts";
import { isOfEnd } from "../model-call/agent-hooks.ts";
import type { TaskOutcome } from "../session/returns.ts";
import { taskKey } from "../session/session.ts";
import { unfitOf } from "../superstep/outcome-compatibility.ts";
import { isStartInDoubt } from "../task/once.ts";
import { isFinal } from "../tool-call/final-call.ts";
import type { Stand } from "./thread-snapshot.ts";

/** Something of a thread that has no place in the graph. */
export interface Misfit {
  readonly kind:
    | "channel"
    | "node"
    | "input"
    | "join"
    | "question"
    | "answer"
    | "result"
    | "tool"
    | "subgraph"
    | "machine";
  /** One sentence without its full stop. */
  readonly what: string;
  readonly node?: string;
  readonly channel?: string;
  /** Where in the value of the channel. */
  readonly path?: string;
}

/** What of a thread does not fit, the graphs inside included; nothing when it may go on. */
export function misfitsOf(stand: Stand, codec: Codec): readonly Misfit[] {
  if (stand.plan.drawing !== undefined) return ofDrawing(stand);
  const inner = stand.calls.flatMap((call) => (call.stand === undefined ? [] : misfitsOf(call.stand, codec)));
  return [
    ...ofState(stand),
    ...ofTasks(stand),
    ...ofJoins(stand),
    ...ofCalls(stand),
    ...ofJournal(stand, codec),
    ...ofTools(stand),
    ...stand.questions.flatMap((row) => ofQuestion(stand, codec, row)),
    ...inner,
  ];
}

/** Values that the schemas of channels refuse, and, where something is pending, channels that need a value and have none. */
function ofState({ plan, state, path, control }: Stand): readonly Misfit[] {
  return Object.entries(plan.graph.state.channels).flatMap(([channel, { kind, parseValue }]): readonly Misfit[] => {
    if (kind === "untracked") return [];
    const value = state[channel];
    if (value === undefined) {
      if (control.tasks.length === 0 || Object.hasOwn(state, channel)) return [];
      return [
        { kind: "channel", what: `the channel "${channel}"${within(path)} has no value and no default`, channel },
      ];
    }
    const parsed = parseValue(value);
    if (parsed.ok) return [];
    const what = `the channel "${channel}"${within(path)} holds what its schema refuses: ${issuesText(parsed.issues)}`;
    const at = parsed.issues[0]?.path;
    return [{ kind: "channel", what, channel, ...(at === undefined ? {} : { path: at }) }];
  });
}

function within(path: readonly string[]): string {
  return path.length === 0 ? "" : ` of the graph in "${path.join(".")}"`;
}

function named({ path }: Stand, node: string): string {
  return [...path, node].join(".");
}

// What runs next.

function ofTasks(stand: Stand): readonly Misfit[] {
  const { plan, control } = stand;
  const pending = control.tasks.map(({ node, input }) => ({
    node,
    sent: input === undefined ? undefined : { input: control.inputs[input] },
  }));
  const misfits = [...pending, ...(control.held ?? [])].flatMap(({ node, sent }) => ofPending(stand, node, sent));
  if (plan.parallel || control.tasks.length < 2) return misfits;
  const nodes = [...new Set(control.tasks.map(({ node }) => node))].map((node) => `"${node}"`);
  const what = `${control.tasks.length} tasks are pending (${nodes.join(", ")}), and no edge of the graph leads to several at once`;
  return [...misfits, { kind: "node", what }];
}

function ofPending(stand: Stand, node: string, sent: { readonly input: unknown } | undefined): readonly Misfit[] {
  const record = stand.plan.nodes.get(node);
  const name = named(stand, node);
  if (record === undefined)
    return [{ kind: "node", what: `the node "${name}" is pending, and the graph has no such node`, node: name }];
  if (record.kind !== "task" && sent !== undefined)
    return [{ kind: "input", what: `the node "${name}" was sent an input, and it takes none any more`, node: name }];
  if (record.kind !== "task" || record.input === undefined) return [];
  if (sent === undefined)
    return [{ kind: "input", what: `the node "${name}" is pending without the input that it takes now`, node: name }];
  const parsed = parseWith(record.input, sent.input);
  if (parsed.ok) return [];
  const what = `the input that was sent to the node "${name}" does not fit any more: ${issuesText(parsed.issues)}`;
  return [{ kind: "input", what, node: name }];
}

function ofJoins(stand: Stand): readonly Misfit[] {
  return Object.entries(stand.control.joins).flatMap(([target, arrived]): readonly Misfit[] => {
    const sources = stand.plan.joins.get(target) ?? [];
    const gone = arrived.filter((source) => !sources.includes(source));
    if (gone.length === 0) return [];
    const from = gone.map((source) => `"${named(stand, source)}"`).join(", ");
    const what = `${from} arrived at the join before "${named(stand, target)}", which does not wait for that any more`;
    return [{ kind: "join", what, node: named(stand, target) }];
  });
}

function ofCalls(stand: Stand): readonly Misfit[] {
  return stand.calls.flatMap(({ node, task, place, stand: inner }): readonly Misfit[] => {
    if (inner !== undefined || task === undefined) return [];
    const name = named(stand, node);
    if (place !== undefined) {
      if (stand.plan.nodes.get(task.node)?.tools?.registry.get(node) === undefined) return [];
      const what = `a graph is at work in a call of the tool "${name}", and the tool runs no graph any more`;
      return [{ kind: "tool", what, node: named(stand, task.node) }];
    }
    if (!stand.plan.nodes.has(node)) return [];
    const what = `a graph is at work in the node "${name}", and the node is no such graph any more`;
    return [{ kind: "subgraph", what, node: name }];
  });
}

// What is recorded of it.

function ofJournal(stand: Stand, codec: Codec): readonly Misfit[] {
  const byTask = new Map(stand.control.tasks.map((task) => [task.id, task]));
  return stand.effects.flatMap((row): readonly Misfit[] => {
    const task = byTask.get(row.task);
    const node = task === undefined ? undefined : stand.plan.nodes.get(task.node);
    if (task === undefined || node === undefined) return [];
    if (!isOfKind(row, node)) {
      const what = `the node "${named(stand, task.node)}" has recorded the ${row.kind} "${row.name}", which a node of its kind does not do`;
      return [{ kind: "result", what, node: named(stand, task.node) }];
    }
    if (row.kind !== "task" || row.key !== taskKey || row.state !== "ok" || row.outcome === undefined) return [];
    return ofOutcome(stand, task, codec.decode(row.outcome) as TaskOutcome);
  });
}

function isOfKind({ kind, key }: EffectRow, { tools, subgraph }: NodeRecord): boolean {
  if (kind === "task") return true;
  return tools === undefined ? kind !== "tool" && subgraph === undefined : kind === "tool" || isOfEnd(key);
}

/** The result of a task that finished, while others of its superstep have not. */
function ofOutcome(stand: Stand, { node }: Task, outcome: TaskOutcome): readonly Misfit[] {
  const name = named(stand, node);
  return unfitOf(stand.plan, outcome).map(({ why, ...where }): Misfit => {
    return { kind: "result", what: `the recorded result of the node "${name}" ${why}`, node: name, ...where };
  });
}

/** Calls of the last message that have no answer yet. Arguments count where a call has begun, or a person was shown them. */
function ofTools(stand: Stand): readonly Misfit[] {
  const { plan, control, state, effects } = stand;
  return control.tasks.flatMap((task) => {
    const node = plan.nodes.get(task.node);
    if (node?.tools === undefined || plan.graph.state.channels["messages"]?.kind !== "messages") return [];
    const { tools } = node;
    const { registry } = tools;
    return openCalls(state["messages"] as readonly Message[]).calls.flatMap((call): readonly Misfit[] => {
      if (isFinal(tools, call)) return [];
      const { block } = call;
      const name = named(stand, task.node);
      const tool = registry.get(block.name);
      if (tool === undefined)
        return [
          {
            kind: "tool",
            what: `the call "${block.id}" is of the tool "${block.name}", which the node "${name}" does not have`,
            node: name,
          },
        ];
      const hasBegun = effects.some(({ kind, key }) => kind === "tool" && key === call.key);
      const isShown = stand.questions.some(({ id }) => id.endsWith(`:${call.key}`));
      const prepared = hasBegun || isShown ? preparedArgs(tool, block.args) : undefined;
      const parsed = prepared?.ok === true ? parseArgs(tool.spec, prepared.value) : prepared;
      if (parsed === undefined || parsed.ok) return [];
      const what = `the arguments of the call "${block.id}" do not fit the tool "${block.name}" any more: ${issuesText(parsed.issues)}`;
      return [{ kind: "tool", what, node: name }];
    });
  });
}

function ofQuestion(stand: Stand, codec: Codec, row: InterruptRow): readonly Misfit[] {
  const misfit = (kind: "question" | "answer", why: string): readonly Misfit[] => [
    { kind, what: `the question "${row.key}" of the node "${row.node}" ${why}`, node: row.node },
  ];
  if (row.answeredBy === byMigration) return [];
  const asked = askedBy(stand.plan, row);
  const node = asked?.graph.nodes.get(asked.node);
  if (asked === undefined || node === undefined) return misfit("question", "is asked, and the graph has no such node");
  const declared = declaredQuestion(asked);
  if (node.tools !== undefined) {
    if (row.about === undefined && asked.key !== inDoubtKey)
      return misfit("question", "was asked by its body, and the node is a tool node now");
  } else if (!isStartInDoubt(row)) {
    if (row.about !== undefined)
      return misfit("question", "is about a tool call, and the node calls no tools any more");
    if (declared === undefined || node.policy.asks?.includes(asked.key) === false)
      return misfit(
        "question",
        isOpen(row)
          ? "is open, and the node does not ask it any more"
          : "is answered, and the node does not ask it any more",
      );
    const shown = payloadSchema(declared);
    const payload = shown === undefined ? undefined : parseWith(shown, codec.decode(row.payload));
    if (payload?.ok === false)
      return misfit("question", `shows what its schema refuses: ${issuesText(payload.issues)}`);
  }
  const text = row.answer ?? row.onExpire;
  const schema = text === undefined ? undefined : schemaOfAnswer(stand.plan, row);
  if (schema === undefined || text === undefined) return [];
  const answer = parseWith(schema, codec.decode(text));
  return answer.ok ? [] : misfit("answer", `has an answer that its schema refuses: ${issuesText(answer.issues)}`);
}

/** Who has answered a question that goes on under another key. */
export const byMigration = "a migration";

// Machines drawn by hand.

/** The id that XState gives to an actor whose state names none. */
const namedByState = /^\d+\./;

/** Whether an actor has the name of a state that does not invoke it any more, as one has that was renamed. */
export function isOfLostState(root: AnyStateNode, id: string): boolean {
  return namedByState.test(id) && !invokes(root, id);
}

function invokes(state: AnyStateNode, id: string): boolean {
  return (
    state.invoke.some((invoke) => invoke.id === id) || Object.values(state.states).some((each) => invokes(each, id))
  );
}

function ofDrawing({ plan, state, control }: Stand): readonly Misfit[] {
  const { drawing } = plan;
  if (drawing === undefined || control.machine === null || control.tasks.length === 0) return [];
  const misfit = (what: string): readonly Misfit[] => [{ kind: "machine", what }];
  try {
    const { machines } = restore(drawing, state as Parameters<typeof restore>[1], control);
    const { timers = [], children = [] } = control.pending ?? {};
    const lost = children.find((id) => isOfLostState(drawing.machine.root, id));
    if (lost !== undefined)
      return misfit(`the actor "${lost}" is under way, and no state of the machine invokes it under that name`);
    return timers.flatMap(({ to, event }) => {
      const events: readonly string[] = machines.get(to)?.drawing.machine.events ?? [];
      if (events.includes(event.type)) return [];
      return misfit(`the timer for "${event.type}" is pending, and the machine knows no such event`);
    });
  } catch (error) {
    return misfit(isStatewrightError(error) ? saidBy(error) : describeThrown(error));
  }
}
