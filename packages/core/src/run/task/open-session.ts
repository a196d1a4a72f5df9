/** Opening a session: options are checked, the thread is claimed, its state is loaded. */

import { checkAnswered } from "../../base/async-schema.ts";
import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { checkId, freshId } from "../../base/ids.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { noSecrets } from "../../base/injection.ts";
import { deepFreeze, describeValue } from "../../base/json.ts";
import { createMask, watched } from "../../base/redaction/redactor.ts";
import { issuesText, parseWith } from "../../base/schema.ts";
import { systemWorld, type World } from "../../base/world.ts";
import { checkThread } from "../../checkpoint/check-writer.ts";
import type { Control, RunRow } from "../../checkpoint/checkpoint.ts";
import { checkMessages, initialState, restoreState, stateWriter } from "../../checkpoint/codec/saved-state.ts";
import { controlOf } from "../../checkpoint/control.ts";
import type { EventRow } from "../../checkpoint/event.ts";
import type { Claim, Store } from "../../checkpoint/store.ts";
import { executingValue } from "../../compile/compile-machine.ts";
import type { Graph } from "../../compile/define-graph.ts";
import { checkpointFormat, formatOf, type Plan, planOf } from "../../compile/plan.ts";
import { type Codec, guardedCodec, plainCodec } from "../../state/codec.ts";
import type { EventStream } from "../events/events.ts";
import { noResults, type Results, writeKept } from "../journal/unsaved-outcomes.ts";
import { kernelFor } from "../kernel/get-kernel.ts";
import { type Kernel, unentered } from "../kernel/kernel.ts";
import { type TakenOver, takeOver, wrote } from "../migration/resolve-version.ts";
import { breakpointsOf } from "../session/breakpoints.ts";
import { takeLeft } from "../session/final-state-cache.ts";
import { createInbox } from "../session/inbox.ts";
import type { Mailbox } from "../session/inbox-buffer.ts";
import type { BreakpointOption, CommonOptions } from "../session/options.ts";
import { shownState } from "../session/output.ts";
import type { Stopped } from "../session/preemption.ts";
import { journalKey, type Saved, type Session } from "../session/session.ts";

/** What opening needs besides the options. */
export interface Opening {
  readonly graph: Graph;
  readonly options: CommonOptions & BreakpointOption<string> & { readonly context?: unknown };
  readonly thread: string;
  readonly runId: string;
  readonly events: EventStream;
  readonly abort: AbortController;
  readonly drain: AbortSignal;
  /** What is sent through its handle. */
  readonly mailbox?: Mailbox;
  /** Stops it from within, for a new input that another process has brought. */
  readonly stop?: (why: Stopped) => void;
  /** A run that stands in the queue and is to begin, unless the one before it has not ended. */
  readonly queued?: RunRow;
  /** It goes on without being asked to, after the death of its process: how often is counted. */
  readonly recovers?: boolean;
  /** Idempotency key and metadata of a new run. */
  readonly named?: Pick<RunRow, "key" | "metadata">;
  readonly mustExist: boolean;
  /** Its first commit comes before any work: the thread may be taken with it. */
  readonly begins?: boolean;
  /** What becomes of a run that cannot go on under the graph as it is now; absent where nothing goes on that has begun. */
  readonly unfit?: "parks" | "refused";
  /** No body runs, so that no context is needed. */
  readonly runsNothing?: boolean;
}

/** The id of the thread: the given one, checked, or a fresh one. */
export function threadId(world: World, thread: string | undefined): string {
  return thread === undefined ? freshId("thread_", world.random) : checkId("thread", thread);
}

/** The world of a run: the given one or the real one. */
export function worldOf(options: CommonOptions): World {
  return options.world ?? systemWorld();
}

/** The codec of a run: the given one, whose failures are errors of ours, or the plain one. */
export function codecOf({ codec = plainCodec }: CommonOptions): Codec {
  return guardedCodec(codec);
}

/** Check the options, claim the thread and load it. What throws leaves the thread as it was. */
export async function openSession(opening: Opening): Promise<Session> {
  const session = await opened(opening);
  opening.events.state = () => shownState(session.plan, session.state);
  return session;
}

async function opened(opening: Opening): Promise<Session> {
  const { graph, options, thread } = opening;
  const plan = planOf(graph);
  const world = worldOf(options);
  const limits = limitsOf(options);
  const context = opening.runsNothing === true ? undefined : readContext(plan, options.context);
  const codec = codecOf(options);
  const kernel = kernelFor(graph, opening.events);
  const mask = createMask();
  const base = {
    plan,
    versions: { graph, migrations: options.migrations ?? [] },
    kernel,
    world,
    context,
    secrets: watched(options.secrets ?? noSecrets, mask),
    mask,
    updates: options.toolUpdates ?? true,
    policies: graph.middleware,
    events: opening.events,
    abort: opening.abort,
    halt: opening.abort.signal,
    drain: opening.drain,
    stop: opening.stop ?? nothingStops,
    mailbox: opening.mailbox,
    within: undefined,
    around: undefined,
    begun: undefined,
    turns: undefined,
    ledger: undefined,
    inner: new Map(),
    codec,
    onTaskFailure: onTaskFailureOf(options),
    onceElsewhere: options.onceElsewhere ?? "ask",
    breakpoints: breakpointsOf(plan, options),
    limits,
    outcomes: new Map(),
    longTerm: options.store === undefined ? undefined : { reader: options.store.longTerm, held: undefined },
    stepsBefore: 0,
    stepsOfRun: 0,
  };
  if (options.store === undefined) {
    const run = freshRun(opening, world, "main");
    const state = initialState(graph.state.channels);
    return {
      ...base,
      run,
      line: run.branch,
      inbox: createInbox(plan, world, undefined),
      saved: undefined,
      sequence: { nextSeq: 1, durableSeq: 0, toldSeq: 0 },
      state,
      control: emptyControl,
      snapshot: plan.drawing === undefined ? kernel.initial()[0] : unentered,
      step: -1,
    };
  }
  const { store } = options;
  if (!opening.mustExist && options.branch !== undefined) await refuseStrangeBranch(store, thread, graph);
  const claim = await store.claim({
    thread,
    branch: opening.queued?.branch ?? options.branch,
    graph: graph.name,
    version: graph.version,
    shape: plan.shape,
    at: world.clock.now(),
    mustExist: opening.mustExist,
    begins: opening.begins,
  });
  let older: Graph;
  try {
    await writeKept(store, thread, claim);
    checkFormat(thread, claim);
    checkThread({ id: thread, graph: claim.writtenBy.graph }, graph);
    const taken = await inherit(opening, store, claim, codec, world);
    if ("claim" in taken) return await load(base, opening, store, taken, codec);
    older = taken.older;
  } catch (error) {
    if (!isStatewrightError(error, "fenced")) await release(store, thread, claim, world);
    throw error;
  }
  await release(store, thread, claim, world);
  return opened({ ...opening, graph: older, options: { ...options, older: [], migrations: [] } });
}

/** A claim makes a branch that is not there: none is made in the thread of another graph. */
async function refuseStrangeBranch(store: Store, thread: string, graph: Graph): Promise<void> {
  const there = await store.thread(thread);
  if (there !== undefined) checkThread(there, graph);
}

/** Take the thread over where another version of the graph has written it. A run that is only looked at is left as it is. */
async function inherit(
  { graph, options, thread, events, unfit, queued }: Opening,
  store: Store,
  claim: Claim,
  codec: Codec,
  world: World,
): Promise<TakenOver> {
  const { older = [], migrations = [] } = options;
  const isOpen = claim.run !== undefined && unfinished(claim.run);
  // What is over goes on with its next input: that is for the newest.
  const goesOn = isOpen || (claim.run === undefined && queued === undefined);
  if (wrote(graph, claim.writtenBy) || (isOpen && unfit === undefined)) return { claim, migrated: false };
  return takeOver({
    ...{ graph, store, codec, world, thread, claim, events, migrations },
    older: goesOn && unfit !== undefined ? older : [],
    unfit: unfit ?? "refused",
  });
}

/**
 * Let a claimed thread go, with no other change than the given row of its run and results that the store refused before.
 * Never rejects: what made the caller stop is worth more than a store that cannot even write this, which is logged; the
 * process that takes over lets the thread go. Tells whether it was written.
 */
export function release(
  store: Store,
  thread: string,
  claim: Claim,
  world: World,
  run?: RunRow,
  events: readonly EventRow[] = [],
  results: Results = noResults,
): Promise<boolean> {
  const { branch, epoch, nextSeq } = claim;
  const [first, last] = [events[0], events[events.length - 1]];
  const numbers = first === undefined ? {} : { after: first.seq - 1 };
  const seq = last?.seq ?? nextSeq - 1;
  return new Promise((resolve) => {
    store.commit({ thread, branch, epoch, ...numbers, seq, run, events, ...results, release: true }, (failure) => {
      if (failure !== undefined)
        world.log("warn", "a thread could not be let go", { thread, error: toErrorRecord(failure) });
      resolve(failure === undefined);
    });
  });
}

async function load(
  base: Omit<Session, "run" | "line" | "inbox" | "saved" | "sequence" | "state" | "control" | "snapshot" | "step">,
  opening: Opening,
  store: Store,
  { claim, migrated }: Extract<TakenOver, { readonly claim: Claim }>,
  codec: Codec,
): Promise<Session> {
  const { graph, thread } = opening;
  const { channels } = graph.state;
  const { head } = claim;
  const left = takeLeft(store, base.plan, codec, thread, claim);
  const rows = head === undefined || left !== undefined ? [] : await store.state(thread, head.id);
  const control = head === undefined ? emptyControl : deepFreeze(controlOf(codec, head));
  const effects =
    head === undefined || control.tasks.length === 0 ? [] : await store.effects(thread, claim.branch, head.step);
  const interrupts =
    head === undefined || control.tasks.length === 0 ? [] : await store.interrupts(thread, claim.branch);
  const saved: Saved = {
    store,
    codec,
    writer: left?.writer ?? stateWriter(channels, codec, rows),
    claim,
    thread: {
      changed: base.plan.drawing === undefined && !migrated && !wrote(graph, claim.writtenBy),
      nextSeq: claim.nextSeq,
      durableSeq: claim.nextSeq - 1,
      toldSeq: claim.nextSeq - 1,
      nextCheckpoint: claim.nextCheckpoint,
      bytes: 0,
      failure: undefined,
      queued: claim.queued,
      unsaved: new Map(),
    },
    parent: head?.id,
    journal: new Map(effects.map((row) => [journalKey(row.step, row.task, row.key), row])),
    interrupts: new Map(interrupts.filter((row) => row.step === head?.step).map((row) => [row.id, row])),
    pending: new Map(),
    starts: new Set(),
    flushing: false,
  };
  const open = claim.run !== undefined && unfinished(claim.run);
  const run: RunRow =
    open && claim.run !== undefined
      ? goingOn(claim.run, claim, graph.version, opening.recovers === true)
      : freshRun(opening, base.world, claim.branch);
  const state = left?.state ?? Object.freeze(restoreState(channels, codec, rows));
  if (left === undefined) checkMessages(channels, state);
  return {
    ...base,
    run,
    line: claim.branch,
    inbox: createInbox(base.plan, base.world, { store, codec, thread, branch: claim.branch }),
    saved,
    sequence: saved.thread,
    state,
    control,
    snapshot: standing(base, thread, control, state, saved.thread.changed),
    step: head?.step ?? -1,
    // A fork begins with the checkpoint of another run, whose steps are not its own.
    stepsBefore: open && head?.run === run.id ? (control.steps ?? 0) : 0,
  };
}

/** Where control stands before there is anything. */
export const emptyControl: Control = { machine: null, tasks: [], inputs: [], joins: {} };

/** A run that has not come to its end: it waits, failed, or its process died. */
export function unfinished(run: RunRow): boolean {
  return run.status !== "done" && run.status !== "cancelled";
}

/** Where the machine of a graph stands in a saved control state: where its nodes say it, when another version has saved it. */
export function standing(
  { plan, kernel }: Pick<Session, "plan" | "kernel">,
  thread: string,
  control: Control,
  state: Readonly<Record<string, unknown>>,
  changed: boolean,
): Session["snapshot"] {
  if (changed && plan.drawing === undefined) {
    const nodes = control.tasks.map(({ node }) => node).filter((node) => plan.nodes.has(node));
    return kernel.restore(executingValue(plan.graph, nodes));
  }
  if (plan.drawing === undefined)
    return control.machine === null ? kernel.initial()[0] : restored(kernel, plan, thread, control, undefined);
  return control.machine === null ? unentered : restored(kernel, plan, thread, control, state["context"]);
}

function restored(kernel: Kernel, plan: Plan, thread: string, control: Control, context: unknown): Session["snapshot"] {
  try {
    return kernel.restore(control.machine, context, control.pending?.children);
  } catch (cause) {
    throw changed(
      plan,
      thread,
      `stands in ${JSON.stringify(control.machine)}, which its machine does not have any more`,
      cause,
    );
  }
}

function nothingStops(): void {
  // Nobody has this run in hand.
}

/** The row of a run that goes on. The deaths of its process are counted for as long as it comes to no new checkpoint. */
function goingOn(before: RunRow, { nextCheckpoint: at }: Claim, version: number, recovers: boolean): RunRow {
  const { recovered, ...run } = before;
  const fresh = { endedAt: undefined, error: undefined };
  const again = { ...run, version, status: "running", attempt: run.attempt + 1, ...fresh } as const;
  if (!recovers || run.status !== "running") return again;
  return { ...again, recovered: { count: recovered?.at === at ? recovered.count + 1 : 1, at } };
}

function freshRun(opening: Opening, world: World, branch: string): RunRow {
  const { graph, thread, runId, queued, named } = opening;
  if (queued !== undefined) {
    const { input: _, stops: __, ...row } = queued;
    return { ...row, version: graph.version, status: "running", startedAt: world.clock.now() };
  }
  return {
    ...named,
    id: runId,
    thread,
    branch,
    graph: graph.name,
    version: graph.version,
    status: "running",
    attempt: 1,
    startedAt: world.clock.now(),
  };
}

function limitsOf(options: CommonOptions): Session["limits"] {
  const { maxSteps = 1_000, maxConcurrency = Number.POSITIVE_INFINITY } = options;
  for (const [name, value] of Object.entries({ maxSteps, maxConcurrency })) {
    if (value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= 1)) continue;
    throw new StatewrightError("invalid_option", {
      what: `${name} is ${describeValue(value)}`,
      next: "Give a whole number from 1",
    });
  }
  return { maxSteps, maxConcurrency };
}

function onTaskFailureOf({ onTaskFailure = "finish" }: CommonOptions): Session["onTaskFailure"] {
  if (onTaskFailure === "finish" || onTaskFailure === "abort") return onTaskFailure;
  throw new StatewrightError("invalid_option", {
    what: `onTaskFailure is ${describeValue(onTaskFailure)}`,
    next: 'Give "finish" or "abort"',
  });
}

/** The context that a graph declares, parsed. Throws `invalid_context`. */
export function readContext(plan: Plan, given: unknown): unknown {
  const definition = plan.graph.context;
  if (definition === undefined) return given;
  const parsed = parseWith(definition.schema, given);
  // Its own: what stands in it may be a client of the caller, which nobody may freeze.
  if (parsed.ok) return Object.freeze(parsed.value);
  disregardPromises(given);
  checkAnswered(parsed, `the context of graph "${plan.graph.name}"`, { graph: plan.graph.name });
  throw new StatewrightError("invalid_context", {
    what: `the context of graph "${plan.graph.name}" does not fit: ${issuesText(parsed.issues)}`,
    next: "Pass context as defineContext declares it; it is given again on every resume",
    place: { graph: plan.graph.name },
    details: parsed.issues,
    cause: parsed.cause,
  });
}

/** What a later version of the engine has written in another way cannot be read here. */
function checkFormat(thread: string, { writtenBy }: Claim): void {
  const format = formatOf(writtenBy.shape) ?? checkpointFormat;
  if (format <= checkpointFormat) return;
  throw new StatewrightError("store_newer", {
    what: `the thread "${thread}" was written in the format ${format}, and this version reads up to ${checkpointFormat}`,
    next: "Update the package: nothing was written",
    place: { graph: writtenBy.graph, thread },
  });
}

function changed(plan: Plan, thread: string, why: string, cause: unknown): StatewrightError {
  if (isStatewrightError(cause, "graph_changed")) return cause;
  return new StatewrightError("graph_changed", {
    what: `the thread "${thread}" ${why}`,
    next: `Use the graph that wrote it, or another thread for "${plan.graph.name}"`,
    place: { graph: plan.graph.name, thread },
    cause,
  });
}
