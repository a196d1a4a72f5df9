/**
 * Child process that is killed: runs random programs over SQLite files in sequence, and resumes the program of the
 * killed process before. Arguments: a folder, the first program. Prints `ready`, and the result of each program.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { getState, type OpenInterrupt, resume, run, type Store } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import { omitFailedAttempts } from "@statewright/testing";
import { createProgramFactory } from "../simulation/create-program.ts";
import type { ExternalWorld } from "../simulation/external-world.ts";
import { createRandomProgram } from "../simulation/random-program.ts";
import { runUninterrupted } from "../simulation/simulate.ts";
import { type SimulatedProgram, simulatedThread } from "../simulation/simulated-program.ts";

/** Output line of this process. */
export type KillMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "done"; readonly program: number; readonly violations: readonly string[] };

interface LogLine {
  readonly key: string;
  readonly once: boolean;
  readonly value: unknown;
}

const thread = simulatedThread;
const real = systemWorld();
/** Retry delays are shortened. */
const world = {
  ...real,
  schedule: { ...real.schedule, after: (ms: number, work: () => void) => real.schedule.after(ms / 50, work) },
};

/** External world as a file, which survives crashes. */
function createExternalWorld(file: string): ExternalWorld & { readonly readLines: () => readonly LogLine[] } {
  const readLines = (): readonly LogLine[] =>
    existsSync(file)
      ? readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as LogLine)
      : [];
  const pause = (): Promise<void> => new Promise((resolve) => real.schedule.soon(resolve));
  return {
    readLines,
    findEffect: (key) => readLines().find((line) => line.key === key),
    performEffect: async (key, work, { effect } = {}) => {
      await pause();
      const value = work();
      appendFileSync(file, `${JSON.stringify({ key, once: effect === "once", value })}\n`);
      await pause();
      return value;
    },
  };
}

async function runToEnd(program: SimulatedProgram, store: Store, outside: ExternalWorld): Promise<void> {
  const { graph, answer } = program;
  for (;;) {
    const started = (await store.head(thread)) !== undefined;
    const { interrupts, status } = started
      ? await getState(graph, { store, thread })
      : { interrupts: [] as readonly OpenInterrupt[], status: undefined };
    if (status === "done") return;
    const answers = Object.fromEntries(
      interrupts.map((interrupt) => [interrupt.id, answer?.(interrupt, outside.findEffect)]),
    );
    if (started) await resume(graph, { store, thread, world, answers }).result;
    else await run(graph, { store, thread, world }).result;
  }
}

async function checkProgram(folder: string, seed: number): Promise<readonly string[]> {
  const outside = createExternalWorld(join(folder, `${seed}.ndjson`));
  const store = sqliteStore(join(folder, `${seed}.db`), { durability: "normal", world });
  // Forks are tested by the simulator; this process runs the main thread only.
  const { blocks } = createRandomProgram(seed);
  const createProgram = createProgramFactory({ blocks });
  const program = createProgram(outside);
  await runToEnd(program, store, outside);
  const violations: string[] = [];
  const times = new Map<string, number>();
  const lines = outside.readLines();
  for (const { key, once } of lines) {
    times.set(key, (times.get(key) ?? 0) + 1);
    if (once && times.get(key) === 2) violations.push(`I2 ${key} happened twice`);
  }
  const expected = await runUninterrupted(createProgram);
  const { state } = await getState(program.graph, { store, thread });
  if (JSON.stringify(omitFailedAttempts(state)) !== JSON.stringify(omitFailedAttempts(expected.state)))
    violations.push("I3 the final state differs from the uninterrupted run");
  for (const key of expected.effects.keys()) if (!times.has(key)) violations.push(`I2 ${key} never happened`);
  for (const key of times.keys())
    if (!expected.effects.has(key)) violations.push(`I3 ${key} happened, but does not happen without kills`);
  let next = 1;
  for (let page = await store.events(thread, { after: 0, limit: 100 }); page.length > 0; ) {
    for (const event of page) {
      const seq = "checkpoint" in event ? event.checkpoint.seq : event.durableEvent.seq;
      if (seq !== next) violations.push(`I4 expected the durable event ${next}, got ${seq}`);
      next = seq + 1;
    }
    page = await store.events(thread, { after: next - 1, limit: 100 });
  }
  const { faults } = await store.verify();
  if (faults.length > 0) violations.push(`I5 ${JSON.stringify(faults)}`);
  await store.close();
  return violations;
}

function sendMessage(line: KillMessage): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const [folder = "", first = "0"] = process.argv.slice(2);
sendMessage({ kind: "ready" });
for (let program = Number(first); ; program++)
  sendMessage({ kind: "done", program, violations: await checkProgram(folder, program) });
