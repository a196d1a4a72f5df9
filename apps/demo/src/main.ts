/** The demo's story: an agent works, is killed, goes on, asks a person, ends; then one looks back and tries another way. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { OpenInterrupt, RunEvent } from "statewright";
import { askPerson } from "./ask-person.ts";
import { countEffects, readEffects } from "./effects-log.ts";
import { bytes, count, duration, plain } from "./format-text.ts";
import {
  keyVariable,
  type Options,
  readOptions,
  readStopped,
  reasonOf,
  type Stopped,
  UsageError,
  usage,
  whereTo,
} from "./options.ts";
import { forkBeforeQuestion, journalNow, sideBySide, standing, tellHistory } from "./thread-inspection.ts";
import { act, bold, complain, createView, dim, say, type View } from "./view.ts";
import type { Job } from "./worker.ts";
import { type Ending, startWorker, type Worker } from "./worker-process.ts";

/** Run the demo. The exit code: 0 done, 1 failed or paused, 2 a wrong command line, 128 + n stopped by signal n. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const options = readOptions(argv);
    if (options !== "help") return await play(prepare(options));
    say(usage);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    complain(error.message);
    return 2;
  }
}

/** Everything that the acts share. */
interface Stage extends Stopped {
  readonly options: Options;
  /** The folder of the database; what a stopped demo leaves. */
  readonly folder: string;
  readonly database: string;
  readonly log: string;
  readonly view: View;
  readonly startedMs: number;
  /** The process at work, if there is one. */
  worker: Worker | undefined;
  /** The signal that asked the demo to stop. */
  signal: "SIGINT" | "SIGTERM" | "SIGHUP" | undefined;
  processes: number;
}

const thread = "audit";

/** The name of the branch on which the question gets the other answer. */
const otherBranch = "other-answer";

function prepare(options: Options): Stage {
  const folder = options.resume ?? stateFolder();
  const stopped: Stopped =
    options.resume === undefined
      ? { target: options.target, report: options.out ?? join(folder, "report.md"), model: options.model }
      : withReport(readStopped(options.resume), options.out);
  keep(folder, stopped);
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

function stateFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), "statewright-demo-"));
  } catch (error) {
    throw new UsageError(
      `No folder can be made in "${tmpdir()}" (${reasonOf(error)}). Set TMPDIR to a folder that can be written.`,
    );
  }
}

/** What a stopped demo left; its report goes elsewhere when the person says so now. */
function withReport(stopped: Stopped, report: string | undefined): Stopped {
  return report === undefined ? stopped : { ...stopped, report };
}

/** Note what the demo needs to go on with. */
function keep(folder: string, stopped: Stopped): void {
  try {
    writeFileSync(join(folder, "demo.json"), `${JSON.stringify(stopped, undefined, 2)}\n`);
  } catch (error) {
    throw new UsageError(`"${folder}" cannot be written (${reasonOf(error)}). Make room there, or look at its rights.`);
  }
}

async function play(stage: Stage): Promise<number> {
  const letGo = listenForSignals(stage);
  try {
    introduce(stage);
    for (const part of [work, decide, lookBack]) {
      const code = await part(stage);
      if (code !== undefined) return code;
    }
    sumUp(stage);
    cleanUp(stage);
    return 0;
  } finally {
    letGo();
  }
}

/** What an act returns when the demo cannot go on. */
type Stop = Promise<number | undefined>;

function introduce({ target, model, folder }: Stage): void {
  say(`${bold("Statewright")}: an agent graph audits ${target}`);
  if (model === undefined) {
    say("Model: a rehearsed script that decides from what the tools return. No key is used, nothing is sent anywhere.");
  } else {
    const key = keyVariable(model);
    say(
      `Model: ${model}. This sends the names of the files of this tree, the text of those that the model asks to read`,
    );
    say(
      `(without what looks like a secret), commit subjects, counts and findings to ${whereTo(model)}${key === undefined ? "" : `, with the key in ${key}`}.`,
    );
  }
  say(dim(`State: ${folder}`));
}

/** Acts 1 and 2: the agent works, is killed with calls in flight, and another process goes on to the question. */
async function work(stage: Stage): Stop {
  const before = await standing(stage.database, thread);
  if (before !== undefined) {
    act(1, "Going on where it was stopped");
    if (before.status === "waiting" || before.status === "done") return undefined;
    return stopOf(stage, await runJob(stage, { begin: false }));
  }
  act(1, "An agent at work");
  const first = await workUntilKilled(stage);
  if (first.status !== "killed" || stage.signal !== undefined) return stopOf(stage, first);

  act(2, "Killed in the middle, and on");
  const left = await journalNow(stage.database, thread);
  const inFlight = left.filter(({ state }) => state === "started");
  say(`SIGKILL with ${count(inFlight.length, "tool call")} in flight. What the database holds of this step:`);
  for (const { name, state } of left)
    say(
      `  ${state === "started" ? "…" : "✓"} ${name.padEnd(14)} ${state === "started" ? "begun, no result" : "result saved"}`,
    );
  say("Another process goes on:");
  const second = await runJob(stage, { begin: false });
  const stop = stopOf(stage, second);
  if (stop !== undefined) return stop;
  const { repeated, twice } = countEffects(readEffects(stage.log));
  say(
    `Counted in a file outside the database: ${count(left.length - inFlight.length, "result")} kept, ${count(inFlight.filter(({ key }) => repeated.includes(key)).length, "call")} ran again`,
  );
  say(
    `under the same key, ${twice.length === 0 ? bold("nothing that had finished ran twice") : `${count(twice.length, "effect")} ran again after it had finished: ${twice.join(", ")}`}.`,
  );
  return undefined;
}

/** The first process. It is killed at the moment when every call that is still open holds halfway. */
function workUntilKilled(stage: Stage): Promise<Ending> {
  const open = new Set<string>();
  let held = 0;
  return runJob(stage, { begin: true, hold: true }, (event, worker) => {
    if (event.type === "tool.started") open.add(event.callId);
    if (event.type === "tool.completed" || event.type === "tool.failed") open.delete(event.callId);
    if (event.type === "custom" && event.name === "held") held += 1;
    if (held > 0 && held === open.size) worker.kill();
  });
}

/** Act 3: the process has ended at the question; another one brings the answer. */
async function decide(stage: Stage): Stop {
  const now = await standing(stage.database, thread);
  const [question] = now?.interrupts ?? [];
  if (question === undefined) return undefined;
  act(3, "It asks a person");
  say("The run waits in the database; no process is left that waits with it.");
  const answer = await answerTo(stage, question);
  if (answer === undefined) return stopped(stage);
  return stopOf(stage, await runJob(stage, { begin: false, answer }));
}

async function answerTo(stage: Stage, { payload }: OpenInterrupt): Promise<Job["answer"] | undefined> {
  const { grade, summary } = payload as { readonly grade: string; readonly summary: string };
  say(`  Verdict: ${bold(grade)}. ${plain(summary)}`);
  say(`  Write the report to ${stage.report}?`);
  const { answer } = stage.options;
  if (answer !== undefined) {
    say(`  ${answer} ${dim("(from --answer)")}`);
    return { ok: answer === "yes" };
  }
  if (process.stdin.isTTY === true) return askPerson();
  say(`  yes ${dim("(there is no terminal to ask at)")}`);
  return { ok: true };
}

/** Act 4: the history, and the same question answered otherwise on a branch of its own. */
async function lookBack(stage: Stage): Stop {
  act(4, "Looking back, and going another way");
  await tellHistory(stage.database, thread);
  const decision = await forkBeforeQuestion(stage.database, thread, otherBranch);
  const ok = decision?.write !== true;
  say();
  say(`A branch from the step before the question, with the other answer: ${bold(ok ? "yes" : "no")}`);
  // Where it stands decides, not who made it: the demo may have been killed between the fork and its first process.
  const { status } = (await standing(stage.database, thread, otherBranch)) ?? {};
  if (status !== "waiting" && status !== "done") {
    const asked = stopOf(stage, await runJob(stage, { begin: false, branch: otherBranch }));
    if (asked !== undefined) return asked;
  }
  const other = await standing(stage.database, thread, otherBranch);
  if (other?.status === "waiting") {
    const answer = { ok, note: "the other answer, on a branch" };
    const ended = stopOf(stage, await runJob(stage, { begin: false, branch: otherBranch, answer }));
    if (ended !== undefined) return ended;
  }
  say();
  await sideBySide(stage.database, thread, otherBranch);
  return undefined;
}

/** The report of the other branch: never in the place that the person has decided about. */
function otherReport({ folder }: Stage): string {
  return join(folder, `report.${otherBranch}.md`);
}

/** Start a process, show what it tells, and wait until it is gone. */
async function runJob(
  stage: Stage,
  what: Pick<Job, "begin" | "branch" | "answer"> & { readonly hold?: boolean },
  also?: (event: RunEvent, worker: Worker) => void,
): Promise<Ending> {
  if (stage.signal !== undefined) return { status: "killed", signal: stage.signal };
  const { database, target: root, log, model, options } = stage;
  const report = what.branch === undefined ? stage.report : otherReport(stage);
  const { hold = false, ...job } = what;
  const context = { root, report, log, hold, hiccup: hold };
  const worker = startWorker({ ...job, database, thread, context, model, maxDbKb: options.maxDbKb }, (event) => {
    stage.view.show(event);
    also?.(event, worker);
  });
  stage.worker = worker;
  stage.processes += 1;
  stage.view.note(dim(`process ${stage.processes} starts (pid ${worker.pid})`));
  try {
    return await worker.ending;
  } finally {
    stage.worker = undefined;
  }
}

/** Say why the demo cannot go on and how it can; undefined when it can. */
function stopOf(stage: Stage, ending: Ending): number | undefined {
  if (ending.status === "done" || ending.status === "waiting")
    return stage.signal === undefined ? undefined : stopped(stage);
  if (stage.signal !== undefined || ending.status === "cancelled") return stopped(stage);
  say();
  if (ending.status === "paused" && ending.result.status === "paused")
    complain(`Paused: ${ending.result.cause.message}`);
  else if (ending.status === "failed") complain(`Failed: ${ending.message}`);
  else complain(`The process ended before its work did (${"signal" in ending ? ending.signal : ending.status}).`);
  howToGoOn(stage);
  return 1;
}

function stopped(stage: Stage): number {
  say();
  say("Stopped.");
  howToGoOn(stage);
  return 128 + constants.signals[stage.signal ?? "SIGINT"];
}

function howToGoOn({ folder }: Stage): void {
  say(`What is done is saved in ${folder}. Go on with:`);
  say(`  npm run demo -- --resume ${folder}`);
}

/** The first signal stops gracefully, a second one at once. Returns how to stop listening. */
function listenForSignals(stage: Stage): () => void {
  const nobodyReads = (): never => {
    stage.worker?.kill();
    process.exit(128 + constants.signals.SIGPIPE);
  };
  process.stdout.on("error", nobodyReads);
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const listeners = names.map((name) => {
    const listener = (): void => {
      if (stage.signal !== undefined) {
        stage.worker?.kill();
        process.exit(128 + constants.signals[name]);
      }
      stage.signal = name;
      say();
      say("Stopping at what is done … (once more to stop at once)");
      stage.worker?.stop();
    };
    process.on(name, listener);
    return [name, listener] as const;
  });
  return () => {
    process.stdout.off("error", nobodyReads);
    for (const [name, listener] of listeners) process.off(name, listener);
  };
}

function sumUp({ view, startedMs, processes, log }: Stage): void {
  const { steps, toolCalls, retries, bytes: saved } = view.tally;
  const { finished, twice } = countEffects(readEffects(log));
  say();
  say(
    `${bold("In all")}  ${[
      count(steps, "step"),
      count(toolCalls, "tool call"),
      `${retries} ${retries === 1 ? "retry" : "retries"}`,
      `${bytes(saved)} of changes saved`,
      `${count(finished, "effect")} finished, ${twice.length === 0 ? "none" : twice.length} run again after that`,
      `${processes} processes`,
      duration(performance.now() - startedMs),
    ].join(" · ")}`,
  );
}

/** Say where the results are, and take away what nobody asked to keep. */
function cleanUp(stage: Stage): void {
  const { options, folder, database, report } = stage;
  const reports = [report, otherReport(stage)].filter((path) => existsSync(path));
  if (reports.length === 0) say("No report was written.");
  for (const path of reports) say(`Report:   ${path}${path === report ? "" : dim("  (of the other branch)")}`);
  if (options.keep) {
    say(`Database: ${database}`);
    say(dim(`          look into it: sqlite3 ${database} 'select * from history'`));
  } else if (reports.some((path) => dirname(path) === folder)) {
    for (const name of ["audit.db", "effects.log", "demo.json"]) rmSync(join(folder, name), { force: true });
  } else rmSync(folder, { recursive: true, force: true });
}
