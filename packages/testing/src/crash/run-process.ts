/** One process of a crash matrix: it starts or resumes the run, answers for people, and goes on until the run rests for good or it dies. */
import {
  type Codec,
  type Graph,
  type GraphTypes,
  getState,
  type InterruptRow,
  isStatewrightError,
  plainCodec,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  type RunResult,
  resume,
  run,
  type Store,
  systemWorld,
  type World,
} from "@statewright/core";
import { withNormalIds } from "../run/normalize-ids.ts";
import { withoutLost } from "../simulation/omit-failed-attempts.ts";
import type { VirtualClock } from "../virtual-clock.ts";
import { storeAround } from "../wrap-store.ts";
import { answerTo, type CrashProgram, commonOptions } from "./crash-program.ts";
import { commitInWords } from "./describe-commit.ts";
import type { CrashEffect } from "./external-world.ts";
import { type Watch, watchedGraph } from "./watch-graph.ts";

/** The thread of every run of a matrix. */
const crashThread = "crash-matrix";

/** How the last process of a run ended. */
export interface LifeEnd {
  readonly status: "done" | "failed" | "in doubt" | "waits" | "cancelled" | "died";
  /** The failure, or what it waits for. */
  readonly why?: string | undefined;
}

/** What is left of a run when its last process has ended, in plain data. */
export interface CrashTale {
  readonly end: LifeEnd;
  /** The value of each channel, encoded. */
  readonly state: Readonly<Record<string, string>>;
  /** The nodes of each superstep. */
  readonly path: readonly string[];
}

/** What a process is made of. */
export interface Process extends Pick<Watch, "alive" | "point"> {
  readonly store: Store;
  readonly world: World;
  readonly clock: VirtualClock;
}

const mostStops = 100;

/** Live until the run rests for good, or the process dies. */
export async function oneLife(program: CrashProgram, process: Process): Promise<LifeEnd> {
  const { alive, world } = process;
  const { graph, model } = program;
  const watched = watchedGraph(graph, { alive, point: process.point, model });
  const store = process.store;
  const common = { ...commonOptions(program), thread: crashThread, store, world };
  let answers: Record<string, unknown> = {};
  for (let stops = 0; stops < mostStops; stops++) {
    const begun = (await store.thread(crashThread)) !== undefined && (await store.head(crashThread)) !== undefined;
    const handle = begun
      ? resume(watched, { ...common, answers } as unknown as ResumeOptions<GraphTypes>)
      : run(watched, { ...common, ...inputOf(program, world) } as unknown as RunOptions<GraphTypes>);
    const end = await endOf(handle, process);
    if (!alive() || end === undefined) return { status: "died" };
    if ("error" in end) return failure(end.error);
    const { result } = end;
    if (result.status === "done" || result.status === "cancelled") return { status: result.status };
    answers = {};
    if (result.status !== "waiting") continue;
    for (const question of result.interrupts) {
      const answer = answerTo(program, question);
      if (answer !== undefined) answers[question.id] = answer;
    }
    if (Object.keys(answers).length > 0) continue;
    const keys = result.interrupts.map(({ key }) => key);
    const inDoubt = keys.some((key) => key.endsWith("in_doubt"));
    return { status: inDoubt ? "in doubt" : "waits", why: keys.map((key) => `"${key}"`).join(", ") };
  }
  return { status: "waits", why: `an end: it stopped ${mostStops} times` };
}

/** What a process tells of its commits. */
export interface CommitWatch extends Pick<Watch, "alive" | "point"> {
  /** An answer of a person is durable. `key` is another one when the question shows something else. */
  readonly answered: (answer: CrashEffect) => void;
}

/** The store of a process, with a point before each commit, and one when it is durable and nobody was told. */
export function storeWithPoints(store: Store, { alive, point, answered }: CommitWatch): Store {
  return storeAround(store, {
    commit: (commit, told) => {
      const what = commitInWords(commit);
      point(`before the commit of ${what}`);
      if (!alive()) return;
      store.commit(commit, (failure, queued) => {
        if (!alive()) return;
        if (failure === undefined)
          for (const row of commit.interrupts ?? []) if (isAnswer(row)) answered(answerIn(row));
        point(`after the commit of ${what}`);
        if (alive()) told(failure, queued);
      });
    },
  });
}

function isAnswer({ key, answer }: InterruptRow): boolean {
  return answer !== undefined && !key.endsWith("in_doubt");
}

function answerIn({ id, key, node, payload }: InterruptRow): CrashEffect {
  return {
    what: `"${key}" in node "${node}"`,
    key: `${id} ${payload}`,
    place: { node, effect: key, kind: "question" },
  };
}

/** What the store knows of the run. */
export async function taleOf(graph: Graph, store: Store, end: LifeEnd, codec: Codec = plainCodec): Promise<CrashTale> {
  const { state, branch } = await getState(graph, { store, thread: crashThread, codec });
  const line = await store.history(crashThread, { branch, limit: 10_000 });
  return {
    end,
    state: stateInText(state as object, codec),
    path: line.toReversed().map(({ nodes }) => nodes.join(" + ") || "start"),
  };
}

/** Without what differs from process to process: ids that are made up, and requests for a message that were made in vain. */
function stateInText(state: object, codec: Codec): CrashTale["state"] {
  const encoded = Object.entries(state).map(([name, value]) => [
    name,
    JSON.parse(codec.encode(value, `the channel "${name}"`)),
  ]);
  const shown = withNormalIds(withoutLost(Object.fromEntries(encoded))) as object;
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, JSON.stringify(value)]));
}

function inputOf({ graph, input }: CrashProgram, world: World): { readonly input?: unknown } {
  if (input === undefined) return {};
  const words = graph as { readonly inputOf?: (words: never, world: World) => object };
  const isWords = typeof input === "string" || Array.isArray(input);
  return { input: isWords && words.inputOf !== undefined ? words.inputOf(input as never, world) : input };
}

type Ended = { readonly result: RunResult<unknown> } | { readonly error: unknown };

/** Let time skip ahead until the run rests; undefined when the process died first. */
async function endOf(handle: RunHandle<unknown>, { alive, clock }: Process): Promise<Ended | undefined> {
  let end: Ended | undefined;
  handle.result.then(
    (result) => {
      end = { result };
    },
    (error: unknown) => {
      end = { error };
    },
  );
  const goesOn = (): boolean => end === undefined && alive();
  while (goesOn()) {
    await clock.settle();
    if (goesOn() && !(await clock.next()) && !(await somethingElse(goesOn)))
      return { error: new Error("nothing happens any more: no timer is set, and nothing is under way") };
  }
  return end;
}

/** With no timer left, something outside may still move the run: it gets two seconds of real time. */
async function somethingElse(goesOn: () => boolean): Promise<boolean> {
  const { clock, schedule } = systemWorld();
  const began = clock.monotonic();
  while (goesOn() && clock.monotonic() - began < 2_000) await new Promise<void>((resolve) => schedule.soon(resolve));
  return !goesOn();
}

function failure(error: unknown): LifeEnd {
  const inDoubt = isStatewrightError(error) && /effect_in_doubt/.test(`${error.code} ${error.message}`);
  return { status: inDoubt ? "in doubt" : "failed", why: error instanceof Error ? error.message : String(error) };
}
