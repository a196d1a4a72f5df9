/**
 * `deliveries`: random deliveries to three threads, by a simulated orchestrator that loses, doubles and reorders them
 * and whose workers die; every tenth seed has workers in processes that SIGKILL ends.
 */
import { type DeliveryResult, systemWorld } from "@statewright/core/adapter";
import { type Chance, createChance } from "@statewright/testing";
import { createDeliverer, type SimulatedDeliverer } from "./at-least-once-deliverer.ts";
import { createLocalWorker } from "./local-worker.ts";
import { createProcessWorker } from "./process-worker.ts";
import { readEffects } from "./read-effects.ts";

/** Seeds between two with real processes. */
const seedsPerProcess = 10;

const schedule = systemWorld().schedule;

/** Runs the seeds; prints the violations. Returns true if there are none. */
export async function runDeliveries(seeds: number, from: number): Promise<boolean> {
  const violations: string[] = [];
  let runs = 0;
  let kills = 0;
  for (let seed = from; seed < from + seeds && violations.length < 20; seed++) {
    const played = await playSeed(seed);
    runs += played.runs;
    kills += played.kills;
    for (const each of played.violations) violations.push(`seed ${seed}: ${each}`);
  }
  for (const line of violations) console.log(line);
  console.log(`deliveries: ${seeds} seeds, ${runs} runs, ${kills} workers ended, violations: ${violations.length}`);
  return violations.length === 0;
}

interface PlayedSeed {
  readonly runs: number;
  readonly kills: number;
  readonly violations: readonly string[];
}

async function playSeed(seed: number): Promise<PlayedSeed> {
  const chance = createChance(seed);
  const createWorker = seed % seedsPerProcess === seedsPerProcess - 1 ? createProcessWorker : createLocalWorker;
  const deliverer = createDeliverer({ createWorker, seed });
  const violations: string[] = [];
  let kills = 0;
  let isDone = false;
  try {
    const killing = (async () => {
      for (let left = chance.getInteger(4); left > 0 && !isDone; left--) {
        await new Promise<void>((resolve) => void schedule.after(chance.getInteger(60), resolve));
        if (isDone) break;
        kills += 1;
        await deliverer.kill();
      }
    })();
    const threads = await Promise.all(["a", "b", "c"].map((thread) => playThread(deliverer, thread, chance)));
    isDone = true;
    await killing;
    for (const { thread, results, expected } of threads)
      violations.push(...(await checkThread(deliverer, { thread, results, expected })));
    const rows = await deliverer.store.runs();
    return { runs: rows.length, kills, violations };
  } finally {
    isDone = true;
    await deliverer.dispose();
  }
}

/** Deliveries of one thread with their results, and the expected log of each run. */
interface PlayedThread {
  readonly thread: string;
  readonly results: readonly DeliveryResult[];
  readonly expected: readonly (readonly string[])[];
}

const logs = {
  pass: ["pass done"],
  desk: ["first done", "yes", "last done", "version 1"],
  calls: ["model done", "done done", "send done", "pay done"],
} as const;

async function playThread(deliverer: SimulatedDeliverer, thread: string, chance: Chance): Promise<PlayedThread> {
  const graph = chance.pick(["pass", "desk", "calls"] as const);
  const count = 1 + chance.getInteger(2);
  const results: DeliveryResult[] = [];
  for (let nth = 0; nth < count; nth++) {
    const run = { graph, input: { log: [] } };
    const started = await deliverer.deliver({ thread, key: `run${nth}`, run });
    if (chance.flip(0.3)) await sendTwice(deliverer, thread, `message${nth}`);
    results.push(await answerUntilDone(deliverer, { thread, started, name: `answer${nth}` }));
  }
  return { thread, results, expected: Array.from({ length: count }, () => logs[graph]) };
}

async function sendTwice(deliverer: SimulatedDeliverer, thread: string, key: string): Promise<void> {
  const delivery = { thread, key, message: { kind: "followUp", messages: "hurry" } } as const;
  await Promise.all([deliverer.deliver(delivery), deliverer.deliver(delivery)]);
}

async function answerUntilDone(
  deliverer: SimulatedDeliverer,
  { thread, started, name }: { readonly thread: string; readonly started: DeliveryResult; readonly name: string },
): Promise<DeliveryResult> {
  let result = started;
  for (let nth = 0; result.status === "waiting" && nth < 10; nth++) {
    const answers = Object.fromEntries(
      result.interrupts.map(({ id, key, payload }) => [id, key === "confirm" ? "yes" : decide(deliverer, payload)]),
    );
    result = await deliverer.deliver({ thread, key: `${name}.${nth}`, answers });
  }
  return result;
}

/** Answers about a call in doubt by the log of the outside. */
function decide({ folder }: SimulatedDeliverer, payload: unknown): object {
  const { step, idempotencyKey } = payload as { readonly step: string; readonly idempotencyKey: string };
  const happened = readEffects(folder).some(({ key }) => key === idempotencyKey);
  return happened ? { happened, value: `${step} done` } : { happened };
}

async function checkThread(
  { store, folder }: SimulatedDeliverer,
  { thread, results, expected }: PlayedThread,
): Promise<readonly string[]> {
  const violations: string[] = [];
  const rows = await store.runs({ thread });
  if (rows.length !== expected.length) violations.push(`${thread} has ${rows.length} runs, of ${expected.length}`);
  for (const { id, status } of rows) if (status !== "done") violations.push(`${thread} ${id} is ${status}`);
  const log = expected.flat();
  const last = results.at(-1)?.output as { readonly log?: readonly string[] } | undefined;
  if (JSON.stringify(last?.log) !== JSON.stringify(log))
    violations.push(`${thread} has the log ${JSON.stringify(last?.log)}, of ${JSON.stringify(log)}`);
  for (const name of ["done", "pay"]) {
    const keys = readEffects(folder).filter((effect) => effect.name === name && effect.key.startsWith(`${thread}/`));
    if (new Set(keys.map(({ key }) => key)).size !== keys.length) violations.push(`${thread} repeated "${name}"`);
  }
  return violations;
}
