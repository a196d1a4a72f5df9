/** Acts of callers over an engine. */
import { isStatewrightError } from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkFunction,
  checkOptions,
  getEngineOptions,
  getStoreRelay,
  guardSchedules,
  invalidOption,
  listOptionNames,
  replaceErrorText,
  systemWorld,
} from "@statewright/core/adapter";

import { plainCodec } from "@statewright/core/store";
import type { Action, Caller } from "../access/caller.ts";
import { RequestProblem } from "../http/problem.ts";
import { createTapes, type Tapes } from "../tape/tapes.ts";
import { CallerScope } from "./caller-scope.ts";
import type { CallerService } from "./caller-service.ts";
import { createChangeActs } from "./change-states.ts";
import { type Cursors, createCursors } from "./cursors.ts";
import { createGraphActs } from "./graphs.ts";
import { createInterruptActs } from "./interrupts.ts";
import { createArtifactActs } from "./native/artifacts.ts";
import { createBulkActs } from "./native/bulk.ts";
import { type AllFileActs, createFileActs } from "./native/files.ts";
import { createMakerGuard } from "./native/guard-maker.ts";
import { createInterruptFeed, type InterruptFeed } from "./native/interrupt-feed.ts";
import { createMoveActs } from "./native/move-threads.ts";
import type { NativeService } from "./native/native-service.ts";
import { getScheduleLimits } from "./native/schedule-limits.ts";
import { createScheduleActs } from "./native/schedules.ts";
import { createWaitActs } from "./native/watch-interrupts.ts";
import { createControlActs } from "./runs/control-runs.ts";
import { createStartActs } from "./runs/start-acts.ts";
import type { ServiceOptions } from "./service-options.ts";
import { createStateActs } from "./states.ts";
import { createEventActs } from "./stream-events.ts";
import { createThreadLocks, type ThreadLocks } from "./thread-locks.ts";
import { createThreadActs } from "./threads.ts";

/** Acts of callers: one object for all requests of a server. */
export interface Services {
  /** Returns the acts of a caller through a protocol. Throws `invalid_option` for a caller outside of the grammar. */
  forCaller(caller: Caller, protocol: string): NativeService;
  /** Ends the streams of events: at once without a run at work, otherwise after the next committed superstep. */
  drainEvents(): void;
}

const names = listOptionNames<ServiceOptions>({
  engine: true,
  authorize: true,
  contextOf: true,
  expose: true,
  scope: true,
  role: true,
  redact: true,
  exposeErrors: true,
  cursorKey: true,
  onAudit: true,
  schedules: true,
  waiting: true,
});

/**
 * Creates the acts of callers over the threads and the graphs of an engine. Throws `invalid_option` for an engine of
 * another copy of the package, and for invalid options.
 *
 * @example
 * ```ts
 * const services = createServices({ engine: host });
 * const service = services.forCaller({ id: "ann", tenant: "acme" }, "native");
 * const { run } = await service.startRun("trip", { graph: "assistant", input });
 * ```
 */
export function createServices(options: ServiceOptions): Services {
  checkServiceOptions(options);
  guardSchedules(options.engine, createMakerGuard(options));
  const { store, codec = plainCodec, world = systemWorld(), relay } = getEngineOptions(options.engine);
  // The relay of a store is in use from its first subscription on: the first run of a server streams its words too.
  if (relay === undefined) getStoreRelay(store).subscribe("", () => undefined)();
  const shared = {
    cursors: createCursors({ secret: options.cursorKey, store, codec, world }),
    tapes: createTapes({ store, codec, world, relay, waiting: options.waiting }),
    locks: createThreadLocks(),
    feed: createInterruptFeed({ store, codec, world }),
  };
  return {
    forCaller: (caller, protocol) => createCallerService(new CallerScope(options, caller, protocol), shared),
    drainEvents: () => shared.tapes.drain(),
  };
}

function checkServiceOptions(options: ServiceOptions): void {
  checkOptions("createServices", options, names);
  const {
    authorize,
    contextOf,
    redact,
    onAudit,
    schedules = {},
    scope = "tenant",
    role = "serve",
    cursorKey,
  } = options;
  checkFunction("createServices", { authorize, contextOf, redact, onAudit });
  checkOptions("createServices schedules", schedules, ["minIntervalMs", "maxPerTenant", "findMaker"]);
  checkFunction("createServices schedules", { findMaker: schedules.findMaker });
  const { minIntervalMs, maxPerTenant } = getScheduleLimits(schedules);
  checkCount("createServices schedules", { minIntervalMs, maxPerTenant }, 0);
  checkChoice("createServices", { scope }, ["tenant", "caller"]);
  checkChoice("createServices", { role }, ["serve", "readOnly"]);
  if (cursorKey === undefined || (typeof cursorKey === "string" && cursorKey.length >= 16)) return;
  throw invalidOption({
    where: "createServices",
    option: "cursorKey",
    expected: "a secret of at least 16 characters",
    found: "a shorter one",
  });
}

/** Parts that all callers share. */
interface SharedParts {
  readonly cursors: Cursors;
  readonly tapes: Tapes;
  readonly locks: ThreadLocks;
  readonly feed: InterruptFeed;
}

/** Creates the acts of a caller. */
function createCallerService(scope: CallerScope, { cursors, tapes, locks, feed }: SharedParts): NativeService {
  const acts: CallerService = {
    ...createGraphActs(scope),
    ...createThreadActs(scope, cursors),
    ...createStartActs(scope, locks),
    ...createControlActs(scope, cursors),
    ...createStateActs(scope, cursors),
    ...createChangeActs(scope, locks),
    ...createInterruptActs(scope, cursors),
    ...createEventActs(scope, tapes),
  };
  const read = createReader(scope);
  const change = createChanger(scope);
  const files = createFileActs(scope);
  const shared: CallerService = {
    listGraphs: read(acts.listGraphs),
    getGraph: read(acts.getGraph),
    listThreads: read(acts.listThreads),
    countThreads: read(acts.countThreads),
    createThread: change("createThread", "thread.write", acts.createThread),
    getThread: read(acts.getThread),
    updateThread: change("updateThread", "thread.write", acts.updateThread),
    deleteThread: change("deleteThread", "thread.delete", async (thread) => {
      await acts.deleteThread(thread);
      await files.deleteFiles(thread);
    }),
    copyThread: change("copyThread", "thread.write", acts.copyThread),
    pruneThread: change("pruneThread", "thread.delete", acts.pruneThread),
    startRun: change("startRun", "run.start", acts.startRun),
    answer: change("answer", "run.answer", acts.answer),
    resumeRun: change("resumeRun", "run.start", acts.resumeRun),
    cancelRun: change("cancelRun", "run.cancel", acts.cancelRun),
    pauseRun: change("pauseRun", "run.cancel", acts.pauseRun),
    sendMessage: change("sendMessage", "run.start", acts.sendMessage),
    listRuns: read(acts.listRuns),
    getRun: read(acts.getRun),
    findRunStart: read(acts.findRunStart),
    waitForRun: read(acts.waitForRun),
    getState: read(acts.getState),
    listStates: read(acts.listStates),
    listBranches: read(acts.listBranches),
    fork: change("fork", "thread.write", acts.fork),
    updateState: change("updateState", "thread.write", acts.updateState),
    editMessage: change("editMessage", "run.start", acts.editMessage),
    listInterrupts: read(acts.listInterrupts),
    streamEvents: read(acts.streamEvents),
  };
  return { ...shared, ...createNativeActs({ scope, cursors, files, shared, feed }) };
}

/** Creates the acts that the native API has beside those of all protocols. */
function createNativeActs({
  scope,
  cursors,
  files,
  shared,
  feed,
}: {
  readonly scope: CallerScope;
  readonly cursors: Cursors;
  readonly files: AllFileActs;
  readonly shared: CallerService;
  readonly feed: InterruptFeed;
}): Omit<NativeService, keyof CallerService> {
  const read = createReader(scope);
  const change = createChanger(scope);
  const artifacts = createArtifactActs(scope, cursors);
  const schedules = createScheduleActs(scope, cursors);
  const moves = createMoveActs(scope);
  const waits = createWaitActs(scope, { acts: shared, feed });
  return {
    listArtifacts: read(artifacts.listArtifacts),
    getArtifact: read(artifacts.getArtifact),
    readArtifact: read(artifacts.readArtifact),
    saveFile: change("saveFile", "thread.write", files.saveFile),
    insertFiles: async (thread, value) => await read(files.insertFiles<typeof value>)(thread, value),
    changeRuns: change("changeRuns", "admin", createBulkActs(scope, shared).changeRuns),
    listSchedules: read(schedules.listSchedules),
    getSchedule: read(schedules.getSchedule),
    saveSchedule: change("saveSchedule", "schedule.write", schedules.saveSchedule),
    deleteSchedule: change("deleteSchedule", "schedule.write", schedules.deleteSchedule),
    pauseSchedule: change("pauseSchedule", "schedule.write", schedules.pauseSchedule),
    resumeSchedule: change("resumeSchedule", "schedule.write", schedules.resumeSchedule),
    runSchedule: change("runSchedule", "schedule.write", schedules.runSchedule),
    listSlots: read(schedules.listSlots),
    exportThread: read(moves.exportThread),
    importThread: change("importThread", "admin", moves.importThread),
    diffStates: read(moves.diffStates),
    watchInterrupts: read(waits.watchInterrupts),
    waitForRest: read(waits.waitForRest),
  };
}

type Act<Args extends readonly unknown[], Result> = (...args: Args) => Promise<Result>;

/** Wraps acts that change nothing: their errors name the ids of the caller. */
function createReader(scope: CallerScope) {
  return <Args extends readonly unknown[], Result>(act: Act<Args, Result>): Act<Args, Result> =>
    async (...args) => {
      try {
        return await act(...args);
      } catch (error) {
        throw toCallerError(scope, error);
      }
    };
}

/** Wraps acts that change something: their result goes to the audit, too. */
function createChanger(scope: CallerScope) {
  return <Args extends readonly unknown[], Result>(
    name: keyof NativeService,
    action: Action,
    act: Act<Args, Result>,
  ): Act<Args, Result> =>
    async (...args) => {
      const audit = createAudit(scope, name, action, args[0]);
      try {
        const result = await act(...args);
        audit("done", result);
        return result;
      } catch (error) {
        const shown = toCallerError(scope, error);
        audit(getCode(shown), undefined);
        throw shown;
      }
    };
}

/** Returns the function that records the end of a change. */
function createAudit(scope: CallerScope, act: keyof NativeService, action: Action, target: unknown) {
  const { options, caller, protocol, world } = scope;
  return (result: string, value: unknown): void => {
    const { onAudit } = options;
    if (onAudit === undefined) return;
    const ids = readIds(target, value);
    const who = { caller: caller.id, tenant: caller.tenant, protocol };
    try {
      onAudit({ at: world.clock.now(), ...who, action, act, ...ids, result });
    } catch (error) {
      world.log("error", "the option onAudit threw", { act, error });
    }
  };
}

/** Ids of the thread and of the run that a change was about. */
function readIds(target: unknown, value: unknown): { readonly thread?: string; readonly run?: string } {
  const result = readObject(value);
  const run = readObject(result["run"]);
  const thread = typeof target === "string" ? target : readObject(result["thread"])["id"];
  const runId = run["id"] ?? (result["attempt"] === undefined ? undefined : result["id"]);
  return {
    ...(typeof thread === "string" ? { thread } : {}),
    ...(typeof runId === "string" ? { run: runId } : {}),
  };
}

function readObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function getCode(error: unknown): string {
  if (error instanceof RequestProblem) return error.problem.code;
  return isStatewrightError(error) ? error.code : "internal";
}

/** Returns an error as the caller may see it: with the ids of the caller. */
function toCallerError(scope: CallerScope, error: unknown): unknown {
  return isStatewrightError(error) ? replaceErrorText(error, (text) => scope.removePrefix(text)) : error;
}
