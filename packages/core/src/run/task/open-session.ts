/** Opens a session: validates the options, claims the thread, loads its state. */

import { checkSyncResult } from "../../base/async-schema.ts";
import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { checkId, createId } from "../../base/ids.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { noSecrets } from "../../base/injection.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze } from "../../base/json.ts";
import { captureSecrets, createRedactor } from "../../base/redaction/redactor.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import { followStoreClock, logSkew, systemWorld, type World } from "../../base/world.ts";
import type { Control, RunRow } from "../../checkpoint/checkpoint.ts";
import type { ClaimedRows } from "../../checkpoint/claimed-rows.ts";
import {
  checkMessages,
  createInitialState,
  createStateWriter,
  restoreState,
} from "../../checkpoint/codec/saved-state.ts";
import { emptyControl, parseControl } from "../../checkpoint/control.ts";
import type { EventRow } from "../../checkpoint/event.ts";
import { type ClaimMode, isOwnerLost } from "../../checkpoint/previous-owner.ts";
import type { Claim, Store } from "../../checkpoint/store.ts";
import { checkThread } from "../../checkpoint/thread-rules.ts";
import type { Graph } from "../../compile/graph.ts";
import { checkpointFormat, getPlan, type Plan, parseFormat } from "../../compile/plan.ts";
import { readGraphModels } from "../../model/model-source.ts";
import { type Codec, createGuardedCodec, plainCodec } from "../../state/codec.ts";
import type { EventStream } from "../events/events.ts";
import { closeLoadedAttempts } from "../journal/effect-attempts.ts";
import { hasUnsavedOutcomes, noOutcomes, type Outcomes, writeUnsavedOutcomes } from "../journal/unsaved-outcomes.ts";
import { getRunKernel } from "../kernel/get-kernel.ts";
import type { Kernel, Snapshot } from "../kernel/kernel.ts";
import type { Programs } from "../migration/program.ts";
import { isWriter, resolveVersion, type VersionResolution } from "../migration/resolve-version.ts";
import { createEventInbox } from "../session/inbox/event-inbox.ts";
import type { InboxBuffer } from "../session/inbox/inbox.ts";
import { createInbox } from "../session/inbox/inbox.ts";
import { parseBreakpoints, restoreBreakpoints, toSavedBreakpoints } from "../session/options/check-run-options.ts";
import type { BreakpointOption, CommonOptions, RunHandle } from "../session/options/options.ts";
import { awaitDurable, createOnceEffects, type Persistence, toRowKey } from "../session/parts/persistence.ts";
import type { Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { createModelFinder, type RunEnvironment } from "../session/parts/run-environment.ts";
import type { Signals } from "../session/parts/signals.ts";
import type { Preemption } from "../session/preemption.ts";
import type { State } from "../session/returns.ts";
import { toPublicState } from "../session/run-row.ts";
import { createSession, type Session } from "../session/session.ts";
import { hasFinalState, popFinalState } from "../superstep/final-state-cache.ts";

/** Fields of a new run that the caller sets. */
export type RunLabels = Pick<RunRow, "key" | "bodyHash" | "metadata" | "tenant" | "owner">;

/** Arguments of `openSession`. */
export interface OpenSessionOptions {
  readonly programs: Programs;
  readonly graph: Graph;
  readonly options: CommonOptions & BreakpointOption<string> & { readonly context?: unknown };
  readonly thread: string;
  readonly runId: string;
  readonly events: EventStream;
  readonly abort: AbortController;
  readonly drain: AbortSignal;
  /** Messages sent through the run handle. */
  readonly mailbox?: InboxBuffer;
  /** Stops the run in favour of an input from another process. */
  readonly stop?: (reason: Preemption) => void;
  /** Claim of the thread for this graph, made before. Used once; released if the session cannot be opened. */
  readonly heldClaim?: Claim | undefined;
  /** Queued run to start, unless the run before it is unfinished. */
  readonly queued?: RunRow;
  /** True for an automatic recovery after a crash of the process; recoveries are counted. */
  readonly isRecovery?: boolean;
  /** Idempotency key, metadata, tenant and owner of a new run. */
  readonly labels?: RunLabels;
  readonly mustExist: boolean;
  /** True for a resume: on a finished thread the session has the id of the finished run, and starts no run. */
  readonly resumes?: boolean;
  /** True when the first commit precedes any work, so that the thread can be claimed with this commit. */
  readonly claimsOnCommit?: boolean;
  /**
   * Handling of a run that is incompatible with the current graph; undefined for callers that continue no started
   * run.
   */
  readonly onIncompatible?: "parks" | "refused";
  /** True when no body runs, so no context is needed. */
  readonly needsNoContext?: boolean;
  /** Idempotency key of a resume, saved with the run. */
  readonly resumeKey?: string | undefined;
  /** Claim of a thread with a live owner. Default `free`. */
  readonly claim?: ClaimMode | undefined;
}

/** Returns the given thread id after validation, or a new id. */
export function resolveThreadId(world: World, thread: string | undefined): string {
  return thread === undefined ? createId("thread_", world.random) : checkId("thread", thread);
}

/** Returns the world of a run; default: the system world. */
export function getWorld(options: CommonOptions): World {
  return options.world ?? systemWorld();
}

/** Returns the codec of a run, wrapped so that its failures are StatewrightErrors; default: the plain codec. */
export function getCodec({ codec = plainCodec }: CommonOptions): Codec {
  return createGuardedCodec(codec);
}

/** Validates the options, claims the thread and loads its state. A failure leaves the thread unchanged. */
export async function openSession(opening: OpenSessionOptions): Promise<Session> {
  const session = await claimSession(opening);
  opening.events.getState = () => toPublicState(session.position.plan, session.progress.state);
  publishEvents(opening, session);
  return session;
}

function publishEvents({ events, thread }: OpenSessionOptions, { position: { run }, journal, env }: Session): void {
  if (journal.saved === undefined) return;
  const { epoch, nextSeq } = journal.saved.claim;
  events.startPublishing({ thread, run: run.id, branch: run.branch, epoch, seq: nextSeq - 1, world: env.world });
}

async function claimSession(opening: OpenSessionOptions): Promise<Session> {
  const { graph, options, thread } = opening;
  const { env, kernel } = await createBase(opening);
  const { codec } = env;
  if (options.store === undefined) return createUnsavedSession(opening, { env, kernel });
  const { store } = options;
  const written = opening.heldClaim ?? (await claimThread(opening, store, env.world));
  const { world, skewMs } = followStoreClock(env.world, written);
  let claim = written;
  let older: Graph;
  try {
    claim = await writeUnsavedOutcomes(store, thread, written);
    checkFormat(thread, claim);
    checkThread({ id: thread, graph: claim.writtenBy.graph }, graph);
    const resolution = await resolveThreadVersion(opening, store, claim, { codec, world });
    if ("claim" in resolution) {
      logSkew(world, thread, skewMs);
      return await loadSession(opening, store, { env: { ...env, world }, kernel }, resolution);
    }
    older = resolution.older;
  } catch (error) {
    if (!isStatewrightError(error, "fenced")) await release(store, thread, claim, { world });
    throw error;
  }
  await release(store, thread, claim, { world });
  const resolved = { graph: older, heldClaim: undefined, options: { ...options, older: [], migrations: [] } };
  return claimSession({ ...opening, ...resolved });
}

/** Creates what needs no claim. Releases the claim made before when the options are invalid. */
async function createBase(opening: OpenSessionOptions): Promise<SessionBase> {
  const { graph, options, thread, heldClaim } = opening;
  try {
    return { env: createEnvironment(opening), kernel: getRunKernel(graph, opening.events) };
  } catch (error) {
    if (heldClaim !== undefined && options.store !== undefined)
      await release(options.store, thread, heldClaim, { world: getWorld(options) });
    throw error;
  }
}

async function claimThread(opening: OpenSessionOptions, store: Store, world: World): Promise<Claim> {
  const { graph, options, thread } = opening;
  const { shape, outline } = getPlan(graph);
  if (!opening.mustExist && options.branch !== undefined) await checkBranchGraph(store, thread, graph);
  return await store.claim({
    thread,
    branch: opening.queued?.branch ?? options.branch,
    graph: graph.name,
    version: graph.version,
    shape,
    outline,
    at: world.clock.now(),
    keySalt: toKeySalt(opening),
    mustExist: opening.mustExist,
    tenant: opening.labels?.tenant,
    owner: opening.labels?.owner,
    startsRun: opening.claimsOnCommit === true && !hasUnsavedOutcomes(store, thread),
    loads: !hasFinalState(store, thread),
    claim: opening.claim,
  });
}

/** Throws when the thread belongs to another graph. A claim creates a missing branch, so this check comes first. */
async function checkBranchGraph(store: Store, thread: string, graph: Graph): Promise<void> {
  const threadRow = await store.thread(thread);
  if (threadRow !== undefined) checkThread(threadRow, graph);
}

/** Resolves the graph version when another version wrote the thread. A run opened only for reading stays unchanged. */
async function resolveThreadVersion(
  { graph, options, thread, events, onIncompatible, queued, programs }: OpenSessionOptions,
  store: Store,
  claim: Claim,
  { codec, world }: { readonly codec: Codec; readonly world: World },
): Promise<VersionResolution> {
  const { older = [], migrations = [] } = options;
  const isOpen = claim.run !== undefined && isUnfinished(claim.run);
  // A finished run continues with its next input, which the newest graph version handles.
  const continuesRun = isOpen || (claim.run === undefined && queued === undefined);
  if (isWriter(graph, claim.writtenBy) || (isOpen && onIncompatible === undefined)) return { claim, migrated: false };
  return resolveVersion({
    ...{ graph, store, codec, world, thread, claim, events, migrations, programs },
    older: continuesRun && onIncompatible !== undefined ? older : [],
    onIncompatible: onIncompatible ?? "refused",
  });
}

/** Options of `release`. */
interface ReleaseOptions {
  readonly world: World;
  readonly run?: RunRow | undefined;
  readonly events?: readonly EventRow[] | undefined;
  readonly results?: Outcomes | undefined;
}

/**
 * Releases a claimed thread; writes only the given run row, events, and results that the store refused before. Never
 * rejects: the caller's own error matters more. A failed release is logged, and the next process to claim the thread
 * releases it. Resolves to true when the release was committed.
 */
export async function release(
  store: Store,
  thread: string,
  claim: Claim,
  { world, run, events = [], results = noOutcomes }: ReleaseOptions,
): Promise<boolean> {
  const { branch, epoch, nextSeq } = claim;
  const [first, last] = [events[0], events[events.length - 1]];
  const numbers = first === undefined ? {} : { after: first.seq - 1 };
  const seq = last?.seq ?? nextSeq - 1;
  const commit = { thread, branch, epoch, ...numbers, seq, run, events, ...results, release: true };
  try {
    await awaitDurable((onCommitted) => store.commit(commit, onCommitted));
    return true;
  } catch (failure) {
    world.log("warn", "a thread could not be released", { thread, error: toErrorRecord(failure) });
    return false;
  }
}

/** Environment and kernel of a session, created before the thread is claimed. */
interface SessionBase {
  readonly env: RunEnvironment;
  readonly kernel: Kernel;
}

/** Creates the session of a run without a store. */
function createUnsavedSession(opening: OpenSessionOptions, { env, kernel }: SessionBase): Session {
  const { graph, events } = opening;
  const plan = getPlan(graph);
  const run = createRunRow(opening, env.world, { branch: "main" });
  return createSession({
    env,
    position: createPosition(plan, run, { step: -1, stepsBefore: 0, keySalt: toKeySalt(opening) }),
    progress: createProgress(
      kernel,
      createInitialState(graph.state.channels),
      emptyControl,
      opening.programs[plan.program.name].enter(kernel),
    ),
    events: { stream: events, sequence: { nextSeq: 1, durableSeq: 0, emittedSeq: 0 } },
    journal: { saved: undefined, longTerm: undefined, outcomes: new Map(), ledger: undefined },
    signals: createSignals(opening),
    lineage: { parent: undefined, innerSessions: new Map() },
    inboxes: {
      inbox: createInbox(plan, env.world, undefined),
      events: createEventInbox(undefined),
      mailbox: opening.mailbox,
    },
  });
}

/** Validates the options of a run and creates its environment. */
function createEnvironment({ graph, options, needsNoContext }: OpenSessionOptions): RunEnvironment {
  const plan = getPlan(graph);
  const world = getWorld(options);
  const limits = parseLimits(options);
  const context = needsNoContext === true ? undefined : readContext(plan, options.context);
  const redactor = createRedactor();
  return {
    world,
    context,
    secrets: captureSecrets(options.secrets ?? noSecrets, redactor),
    redactor,
    codec: getCodec(options),
    versions: { graph, migrations: options.migrations ?? [] },
    onTaskFailure: parseOnTaskFailure(options),
    onPriorEffect: options.onPriorEffect ?? "ask",
    breakpoints: parseBreakpoints(plan, options),
    limits,
    emitsUpdates: options.toolUpdates ?? true,
    graphMiddleware: graph.middleware,
    ...createModelFinder({ run: readGraphModels(options), graphs: graph.models === undefined ? [] : [graph.models] }),
  };
}

function createPosition(
  plan: Plan,
  run: RunRow,
  { step, stepsBefore, keySalt }: Pick<Position, "step" | "stepsBefore" | "keySalt">,
): Position {
  return { plan, run, namespace: run.branch, keySalt, nesting: undefined, step, stepsBefore, stepsOfRun: 0 };
}

/** Returns the random part of the idempotency keys of a thread that this run creates: 60 bits of the id of the run. */
function toKeySalt({ runId }: OpenSessionOptions): string {
  return runId.slice(-12);
}

function createProgress(kernel: Kernel, state: State, control: Control, snapshot: Snapshot): Progress {
  return { kernel, state, control, snapshot, startedAgents: undefined, turns: undefined };
}

function createSignals({ abort, drain, stop = ignoreStop }: OpenSessionOptions): Signals {
  return { abort, halt: abort.signal, drain, stop };
}

async function loadSession(
  opening: OpenSessionOptions,
  store: Store,
  { env, kernel }: SessionBase,
  { claim, migrated }: Extract<VersionResolution, { readonly claim: Claim }>,
): Promise<Session> {
  const { graph, thread, events, programs } = opening;
  const { world, codec } = env;
  const plan = getPlan(graph);
  const program = programs[plan.program.name];
  const signals = createSignals(opening);
  const { channels } = graph.state;
  const { head } = claim;
  const finalState = popFinalState(store, plan, codec, { thread, claim });
  const control = head === undefined ? emptyControl : deepFreeze(parseControl(codec, head));
  const { loaded = noLoadedRows } = claim;
  const rows =
    head === undefined || finalState !== undefined ? [] : (loaded.state ?? (await store.state(thread, head.id)));
  const isAtRest = head === undefined || control.tasks.length === 0;
  const effects = isAtRest ? [] : (loaded.effects ?? (await store.effects(thread, claim.branch, head.step)));
  const interrupts = isAtRest ? [] : (loaded.interrupts ?? (await store.interrupts(thread, claim.branch)));
  const open = claim.run !== undefined && isUnfinished(claim.run);
  const breakpoints =
    opening.options.breakpoints === undefined
      ? (open ? claim.run : opening.queued)?.breakpoints
      : toSavedBreakpoints(env.breakpoints);
  const row =
    open && claim.run !== undefined
      ? toResumedRow(claim.run, claim, graph.version, opening)
      : createRunRow({ ...opening, runId: findFinishedRun(opening, claim, control) ?? opening.runId }, world, claim);
  const run = replaceBreakpoints(row, breakpoints);
  const saved: Persistence = {
    store,
    codec,
    writer: finalState?.writer ?? createStateWriter(channels, codec, rows),
    // A long run keeps no text of its first state.
    claim: claim.loaded === undefined ? claim : { ...claim, loaded: { ...claim.loaded, state: [], effects: [] } },
    thread: {
      changed: program.derivesPosition && !migrated && !isWriter(graph, claim.writtenBy),
      nextSeq: claim.nextSeq,
      durableSeq: claim.nextSeq - 1,
      emittedSeq: claim.nextSeq - 1,
      nextCheckpoint: claim.nextCheckpoint,
      bytes: 0,
      failure: undefined,
      queued: claim.queued,
      messages: claim.messages,
      requests: claim.requests,
      arrivals: { version: claim.messages === 0 ? 0 : 1 },
      pauseRequests: new Set(),
      wakeAt: undefined,
      pause: (reason) => (events.handle as RunHandle<unknown> | undefined)?.drain(reason),
      takenNamespaces: isOwnerLost(claim.previousOwner) ? new Set() : undefined,
      claimsOnCommit: opening.claimsOnCommit === true,
      onceEffects: createOnceEffects(),
      unsavedOutcomes: new Map(),
      run,
      world,
      abort: signals.abort,
      stop: signals.stop,
    },
    namespace: claim.branch,
    parents: [],
    parent: head?.id,
    rows: new Map(effects.map((row) => [toRowKey(row), row])),
    interrupts: new Map(interrupts.filter((row) => row.step === head?.step).map((row) => [row.id, row])),
    pending: new Map(),
    starts: new Set(),
    plannedStarts: new Map(),
    flushing: false,
  };
  closeLoadedAttempts(saved);
  const state = finalState?.state ?? Object.freeze(restoreState(channels, codec, rows));
  if (finalState === undefined) checkMessages(channels, state);
  // A fork starts from a checkpoint of another run, whose steps do not count.
  const stepsBefore = open && head?.run === run.id ? (control.steps ?? 0) : 0;
  const snapshot = program.restore({ plan, kernel }, { thread, control, state, changed: saved.thread.changed });
  const location = { store, codec, thread, branch: claim.branch, arrivals: saved.thread.arrivals };
  return createSession({
    env: breakpoints === undefined ? env : { ...env, breakpoints: restoreBreakpoints(plan, breakpoints) },
    position: createPosition(plan, run, { step: head?.step ?? -1, stepsBefore, keySalt: claim.keySalt }),
    progress: createProgress(kernel, state, control, snapshot),
    events: { stream: events, sequence: saved.thread },
    journal: {
      saved,
      longTerm: { reader: store.longTerm, buffered: undefined },
      outcomes: new Map(),
      ledger: undefined,
    },
    signals,
    lineage: { parent: undefined, innerSessions: new Map() },
    inboxes: {
      inbox: createInbox(plan, world, location),
      events: createEventInbox(location),
      mailbox: opening.mailbox,
    },
  });
}

const noLoadedRows: Partial<ClaimedRows> = {};

/** Returns true if a run is unfinished: not done and not cancelled. */
export function isUnfinished(run: RunRow): boolean {
  return run.status !== "done" && run.status !== "cancelled";
}

function ignoreStop(): void {
  // No handle: nothing to stop.
}

function replaceBreakpoints({ breakpoints: _, ...row }: RunRow, breakpoints: RunRow["breakpoints"]): RunRow {
  return breakpoints === undefined ? row : { ...row, breakpoints };
}

/** Returns the row of a resumed run. Counts crashes of its process until the run writes a new checkpoint. */
function toResumedRow(
  before: RunRow,
  { nextCheckpoint: at }: Claim,
  version: number,
  { isRecovery = false, resumeKey = before.resumeKey }: Pick<OpenSessionOptions, "isRecovery" | "resumeKey">,
): RunRow {
  const { recovered, wakeAt: _, ...run } = before;
  const cleared = { endedAt: undefined, error: undefined };
  const keyed = resumeKey === undefined ? {} : { resumeKey };
  const resumed = { ...run, version, status: "running", attempt: run.attempt + 1, ...cleared, ...keyed } as const;
  if (!isRecovery || run.status !== "running") return resumed;
  return { ...resumed, recovered: { count: recovered?.at === at ? recovered.count + 1 : 1, at } };
}

/** Finds the run of a finished thread, which its resume refers to. The resume writes no row. */
function findFinishedRun(
  { resumes = false }: OpenSessionOptions,
  { run, head }: Claim,
  { tasks }: Control,
): string | undefined {
  return resumes && tasks.length === 0 ? (run?.id ?? head?.run) : undefined;
}

function createRunRow(
  opening: OpenSessionOptions,
  world: World,
  { branch, tenant }: Pick<Claim, "branch" | "tenant">,
): RunRow {
  const { graph, thread, runId, queued, labels } = opening;
  if (queued !== undefined) {
    const { input: _, stops: __, ...row } = queued;
    return { ...row, version: graph.version, status: "running", startedAt: world.clock.now() };
  }
  return {
    ...labels,
    ...(tenant === undefined ? {} : { tenant }),
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

function parseLimits(options: CommonOptions): RunEnvironment["limits"] {
  const { maxSteps = 1_000, maxConcurrency = Number.POSITIVE_INFINITY } = options;
  for (const [name, value] of Object.entries({ maxSteps, maxConcurrency })) {
    if (value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= 1)) continue;
    throw invalidOption({ where: "run", option: name, expected: "an integer ≥ 1", got: value });
  }
  return { maxSteps, maxConcurrency };
}

function parseOnTaskFailure({ onTaskFailure = "finish" }: CommonOptions): RunEnvironment["onTaskFailure"] {
  if (onTaskFailure === "finish" || onTaskFailure === "abort") return onTaskFailure;
  throw invalidOption({ where: "onTaskFailure", expected: '"finish" or "abort"', got: onTaskFailure });
}

/**
 * Parses the context with the schema that the graph declares; without a context, each value has its default. Throws
 * `invalid_context`.
 */
export function readContext(plan: Plan, context: unknown): unknown {
  const definition = plan.graph.context;
  if (definition === undefined) return context;
  const parsed = parseWith(definition.schema, context === undefined ? {} : context);
  // Shallow freeze: the context may hold clients of the caller, which must not be frozen.
  if (parsed.ok) return Object.freeze(parsed.value);
  ignoreRejections(context);
  checkSyncResult(parsed, `the context of graph "${plan.graph.name}"`, { graph: plan.graph.name });
  throw new StatewrightError("invalid_context", {
    what: `the context of graph "${plan.graph.name}" is invalid: ${describeIssues(parsed.issues)}`,
    next: "Pass a context that matches defineContext, again on every resume; pass an engine the function context",
    place: { graph: plan.graph.name },
    details: parsed.issues,
    cause: parsed.cause,
  });
}

/** Throws `store_newer` when a later engine version wrote the thread in a newer checkpoint format. */
function checkFormat(thread: string, { writtenBy }: Claim): void {
  const format = parseFormat(writtenBy.shape) ?? checkpointFormat;
  if (format <= checkpointFormat) return;
  throw new StatewrightError("store_newer", {
    what: `the thread "${thread}" has the checkpoint format ${format}, and this version supports formats up to ${checkpointFormat}`,
    next: "Update the package. Nothing was written",
    place: { graph: writtenBy.graph, thread },
  });
}
