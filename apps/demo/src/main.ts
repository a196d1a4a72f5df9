/**
 * Acts of the demo: run the agent, kill its process, resume the run, answer an interrupt, then show the history and
 * fork a branch with another answer.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { OpenInterrupt, RunEvent } from "statewright";
import { askPerson } from "./ask-person.ts";
import { countEffects, readEffects } from "./effects-log.ts";
import { formatBytes, formatCount, formatDuration, toPlainLine } from "./format-text.ts";
import {
  getErrorCode,
  getKeyVariable,
  getRequestDestination,
  type Options,
  readOptions,
  readStopped,
  type StoppedDemo,
  UsageError,
  usage,
} from "./options.ts";
import { createReportData } from "./report.ts";
import type { ServeDemoOptions } from "./serve/serve-demo.ts";
import {
  forkBeforeInterrupt,
  listJournalRows,
  loadBranchState,
  printBranchComparison,
  printHistory,
} from "./thread-inspection.ts";
import { bold, createView, dim, print, printActTitle, printError, printJson, type View } from "./view.ts";
import type { Job } from "./worker.ts";
import { type Ending, startWorker, type Worker } from "./worker-process.ts";

/**
 * Runs the demo. Returns the exit code: 0 done, 1 failed or paused, 2 invalid command line, 128 + n stopped by signal
 * n.
 */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const options = readOptions(argv);
    if (options !== "help" && options.serve !== undefined)
      return await serveUntilSignal({ ...options, ...options.serve });
    if (options !== "help") return await runActs(prepareState(options));
    print(usage);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    printError(error.message);
    return 2;
  }
}

/** Serves the agent until Ctrl-C or SIGTERM. The server is loaded for this alone. */
async function serveUntilSignal(options: ServeDemoOptions): Promise<number> {
  const { describeServedDemo, startServedDemo } = await import("./serve/serve-demo.ts");
  const served = await startServedDemo({
    ...options,
    log: (level, message, fields) => {
      if (level === "error" || level === "warn") printError(`${message} ${JSON.stringify(fields ?? {})}`);
    },
  });
  print(describeServedDemo(served, options.store));
  const signal = await new Promise<"SIGINT" | "SIGTERM">((resolve) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => resolve(name));
  });
  print("Stopping. A second Ctrl-C stops at once.");
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.once(name, () => process.exit(128 + constants.signals[name]));
  await served.close();
  return 128 + constants.signals[signal];
}

/** State shared by the acts. */
interface DemoState extends StoppedDemo {
  readonly options: Options;
  /** Folder of the database; a stopped demo resumes from this folder. */
  readonly folder: string;
  readonly database: string;
  readonly log: string;
  readonly view: View;
  readonly startedMs: number;
  /** Active worker process, if any. */
  worker: Worker | undefined;
  /** Signal that stopped the demo. */
  signal: "SIGINT" | "SIGTERM" | "SIGHUP" | undefined;
  processes: number;
}

const thread = "audit";

/** Name of the branch with the other answer. */
const otherBranch = "other-answer";

function prepareState(options: Options): DemoState {
  const folder = options.resume ?? createStateFolder();
  const stopped: StoppedDemo =
    options.resume === undefined
      ? { target: options.target, report: options.out ?? join(folder, "report.md"), model: options.model }
      : overrideReport(readStopped(options.resume), options.out);
  saveStoppedDemo(folder, stopped);
  return {
    ...stopped,
    options,
    folder,
    database: join(folder, "audit.db"),
    log: join(folder, "effects.log"),
    view: createView(),
    startedMs: performance.now(),
    worker: undefined,
    signal: undefined,
    processes: 0,
  };
}

function createStateFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), "statewright-demo-"));
  } catch (error) {
    throw new UsageError(
      `Could not create a folder in "${tmpdir()}" (${getErrorCode(error)}). Set TMPDIR to a writable folder.`,
    );
  }
}

/** Replaces the report path of a stopped demo by the path of `--out`, if given. */
function overrideReport(stopped: StoppedDemo, report: string | undefined): StoppedDemo {
  return report === undefined ? stopped : { ...stopped, report };
}

/** Saves the data for `--resume`. */
function saveStoppedDemo(folder: string, stopped: StoppedDemo): void {
  try {
    writeFileSync(join(folder, "demo.json"), `${JSON.stringify(stopped, undefined, 2)}\n`);
  } catch (error) {
    throw new UsageError(
      `Could not write to "${folder}" (${getErrorCode(error)}). Free disk space or change the permissions of the folder.`,
    );
  }
}

async function runActs(demo: DemoState): Promise<number> {
  const removeListeners = listenForSignals(demo);
  try {
    printIntroduction(demo);
    for (const runAct of [runUntilInterrupt, answerInterrupt, compareAnswers]) {
      const code = await runAct(demo);
      if (code !== undefined) return code;
    }
    printSummary(demo);
    await printReportData(demo);
    printResults(demo);
    return 0;
  } finally {
    removeListeners();
  }
}

/** Result of an act: the exit code if the demo must end, otherwise undefined. */
type ActResult = Promise<number | undefined>;

function printIntroduction({ target, model, folder }: DemoState): void {
  print(`${bold("Statewright")}: an agent graph audits ${target}`);
  if (model === undefined) {
    print("Model: a scripted model that decides from the tool results. It needs no key and sends no data.");
  } else {
    const key = getKeyVariable(model);
    print(
      `Model: ${model}. The demo sends file names of this tree, the text of files read by the model (secrets redacted),`,
    );
    print(
      `commit subjects, counts and findings to ${getRequestDestination(model)}${key === undefined ? "" : `, with the key in ${key}`}.`,
    );
  }
  print(dim(`State: ${folder}`));
}

/**
 * Acts 1 and 2: runs the agent, kills its process during tool calls, and resumes in another process up to the
 * interrupt.
 */
async function runUntilInterrupt(demo: DemoState): ActResult {
  const previous = await loadBranchState(demo.database, thread);
  if (previous !== undefined) {
    printActTitle(1, "Resume the stopped demo");
    if (previous.status === "waiting" || previous.status === "done") return undefined;
    return handleEnding(demo, await runJob(demo, { start: false }));
  }
  printActTitle(1, "Run an agent");
  const first = await runUntilKilled(demo);
  if (first.status !== "killed" || demo.signal !== undefined) return handleEnding(demo, first);

  printActTitle(2, "Kill the process and resume the run");
  const journal = await listJournalRows(demo.database, thread);
  const inFlight = journal.filter(({ state }) => state === "started");
  print(
    `SIGKILL with ${formatCount(inFlight.length, "tool call")} in flight. Journal rows of this step in the database:`,
  );
  for (const { name, state } of journal)
    print(
      `  ${state === "started" ? "…" : "✓"} ${name.padEnd(14)} ${state === "started" ? "started, no result" : "result saved"}`,
    );
  print("Another process resumes the run:");
  const second = await runJob(demo, { start: false });
  const exitCode = handleEnding(demo, second);
  if (exitCode !== undefined) return exitCode;
  const { repeated, duplicated } = countEffects(readEffects(demo.log));
  print(
    `Counted in a file outside the database: ${formatCount(journal.length - inFlight.length, "result")} reused, ${formatCount(inFlight.filter(({ key }) => repeated.includes(key)).length, "call")} repeated`,
  );
  print(
    `with the same idempotency key, ${duplicated.length === 0 ? bold("no finished effect ran twice") : `${formatCount(duplicated.length, "finished effect")} ran again: ${duplicated.join(", ")}`}.`,
  );
  return undefined;
}

/** Runs the first process, and kills the process when all open tool calls are suspended halfway. */
function runUntilKilled(demo: DemoState): Promise<Ending> {
  const openCalls = new Set<string>();
  let suspended = 0;
  return runJob(demo, { start: true, hold: true }, (event, worker) => {
    if (event.type === "tool.started") openCalls.add(event.callId);
    if (event.type === "tool.completed" || event.type === "tool.failed") openCalls.delete(event.callId);
    if (event.type === "custom" && event.name === "tool.suspended") suspended += 1;
    if (suspended > 0 && suspended === openCalls.size) worker.kill();
  });
}

/** Act 3: the process ended at the interrupt; another process resumes the run with the answer. */
async function answerInterrupt(demo: DemoState): ActResult {
  const branchState = await loadBranchState(demo.database, thread);
  const [interrupt] = branchState?.interrupts ?? [];
  if (interrupt === undefined) return undefined;
  printActTitle(3, "Answer an interrupt");
  print("The run waits in the database. No process is running.");
  const answered = await askForAnswer(demo, interrupt);
  if (answered === undefined) return printStopped(demo);
  return handleEnding(demo, await runJob(demo, { start: false, ...answered }));
}

/** Answer with its source; undefined on Ctrl-C or Ctrl-D. */
type DemoAnswer = Required<Pick<Job, "answer" | "by">>;

async function askForAnswer(demo: DemoState, { payload }: OpenInterrupt): Promise<DemoAnswer | undefined> {
  const { grade, summary } = payload as { readonly grade: string; readonly summary: string };
  print(`  Verdict: ${bold(grade)}. ${toPlainLine(summary)}`);
  print(`  Write the report to ${demo.report}?`);
  const { answer } = demo.options;
  if (answer !== undefined) {
    print(`  ${answer} ${dim("(from --answer)")}`);
    return { answer: { ok: answer === "yes" }, by: "option" };
  }
  if (process.stdin.isTTY === true && !demo.options.json) {
    const given = await askPerson();
    return given === undefined ? undefined : { answer: given, by: "terminal" };
  }
  print(`  yes ${dim(demo.options.json ? "(default of --json)" : "(default, because stdin is not a terminal)")}`);
  return { answer: { ok: true }, by: "default" };
}

/** Act 4: prints the history, and answers the same interrupt differently on a separate branch. */
async function compareAnswers(demo: DemoState): ActResult {
  printActTitle(4, "Show the history and fork a branch");
  await printHistory(demo.database, thread);
  const decision = await forkBeforeInterrupt(demo.database, thread, otherBranch);
  const ok = decision?.write !== true;
  print();
  print(`Fork from the step before the interrupt, with the other answer: ${bold(ok ? "yes" : "no")}`);
  // Decide by the status of the branch: a kill between the fork and its first process leaves a branch without a run.
  const { status } = (await loadBranchState(demo.database, thread, otherBranch)) ?? {};
  if (status !== "waiting" && status !== "done") {
    const exitCode = handleEnding(demo, await runJob(demo, { start: false, branch: otherBranch }));
    if (exitCode !== undefined) return exitCode;
  }
  const other = await loadBranchState(demo.database, thread, otherBranch);
  if (other?.status === "waiting") {
    const answer = { ok, note: "the other answer, on a branch" };
    const endCode = handleEnding(demo, await runJob(demo, { start: false, branch: otherBranch, answer, by: "demo" }));
    if (endCode !== undefined) return endCode;
  }
  print();
  await printBranchComparison(demo.database, thread, otherBranch);
  return undefined;
}

/** Returns the report path of the other branch. Never the path approved for the main branch. */
function getOtherReport({ folder }: DemoState): string {
  return join(folder, `report.${otherBranch}.md`);
}

/** Starts a process, shows its events, and waits for its exit. */
async function runJob(
  demo: DemoState,
  jobOptions: Pick<Job, "start" | "branch" | "answer" | "by"> & { readonly hold?: boolean },
  onEvent?: (event: RunEvent, worker: Worker) => void,
): Promise<Ending> {
  if (demo.signal !== undefined) return { status: "killed", signal: demo.signal };
  const { database, target: root, log, model, options } = demo;
  const report = jobOptions.branch === undefined ? demo.report : getOtherReport(demo);
  const { hold = false, ...job } = jobOptions;
  const context = { root, report, log, hold, failFirstAttempt: hold };
  const worker = startWorker({ ...job, database, thread, context, model, maxDbKb: options.maxDbKb }, (event) => {
    demo.view.show(event);
    onEvent?.(event, worker);
  });
  demo.worker = worker;
  demo.processes += 1;
  demo.view.note(dim(`process ${demo.processes} started (pid ${worker.pid})`));
  try {
    return await worker.ending;
  } finally {
    demo.worker = undefined;
  }
}

/**
 * Prints the reason of a stop and the resume command. Returns the exit code, or undefined if the demo can continue.
 */
function handleEnding(demo: DemoState, ending: Ending): number | undefined {
  if (ending.status === "done" || ending.status === "waiting")
    return demo.signal === undefined ? undefined : printStopped(demo);
  if (demo.signal !== undefined || ending.status === "cancelled") return printStopped(demo);
  print();
  if (ending.status === "paused" && ending.result.status === "paused")
    printError(`Paused: ${ending.result.cause.message}`);
  else if (ending.status === "failed") printError(`Failed: ${ending.message}`);
  else
    printError(`The process exited before its job finished (${"signal" in ending ? ending.signal : ending.status}).`);
  printResumeCommand(demo);
  return 1;
}

function printStopped(demo: DemoState): number {
  print();
  print("Stopped.");
  printResumeCommand(demo);
  return 128 + constants.signals[demo.signal ?? "SIGINT"];
}

function printResumeCommand({ folder }: DemoState): void {
  print(`Progress is saved in ${folder}. Resume with:`);
  print(`  npm run demo -- --resume ${folder}`);
}

/**
 * Stops gracefully on the first signal, and immediately on the second. Returns a function that removes the listeners.
 */
function listenForSignals(demo: DemoState): () => void {
  const handleClosedOutput = (): never => {
    demo.worker?.kill();
    process.exit(128 + constants.signals.SIGPIPE);
  };
  process.stdout.on("error", handleClosedOutput);
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const listeners = names.map((name) => {
    const listener = (): void => {
      if (demo.signal !== undefined) {
        demo.worker?.kill();
        process.exit(128 + constants.signals[name]);
      }
      demo.signal = name;
      print();
      print("Stopping after saving finished work … (send the signal again to stop immediately)");
      demo.worker?.stop();
    };
    process.on(name, listener);
    return [name, listener] as const;
  });
  return () => {
    process.stdout.off("error", handleClosedOutput);
    for (const [name, listener] of listeners) process.off(name, listener);
  };
}

function printSummary({ view, startedMs, processes, log }: DemoState): void {
  const { steps, toolCalls, retries, bytes: saved } = view.tally;
  const { finished, duplicated } = countEffects(readEffects(log));
  print();
  print(
    `${bold("Total")}  ${[
      formatCount(steps, "step"),
      formatCount(toolCalls, "tool call"),
      `${retries} ${retries === 1 ? "retry" : "retries"}`,
      `${formatBytes(saved)} of changes saved`,
      `${formatCount(finished, "effect")} finished, ${duplicated.length === 0 ? "none" : duplicated.length} repeated after finishing`,
      `${processes} processes`,
      formatDuration(performance.now() - startedMs),
    ].join(" · ")}`,
  );
}

/** Prints the report as data, for `--json`. */
async function printReportData({ options, database }: DemoState): Promise<void> {
  if (!options.json) return;
  const branchState = await loadBranchState(database, thread);
  if (branchState !== undefined) printJson(createReportData(branchState.state));
}

/** Prints the paths of the results, and deletes the state unless `--keep` was given. */
function printResults(demo: DemoState): void {
  const { options, folder, database, report } = demo;
  const reports = [report, getOtherReport(demo)].filter((path) => existsSync(path));
  if (reports.length === 0) print("No report was written.");
  for (const path of reports) print(`Report:   ${path}${path === report ? "" : dim("  (other branch)")}`);
  if (options.keep) {
    print(`Database: ${database}`);
    print(dim(`          inspect with: sqlite3 ${database} 'select * from history'`));
  } else if (reports.some((path) => dirname(path) === folder)) {
    for (const name of ["audit.db", "effects.log", "demo.json"]) rmSync(join(folder, name), { force: true });
  } else rmSync(folder, { recursive: true, force: true });
}
