/**
 * `engines`: eight processes with an engine each on one file, with a queue of 100 tenants of which one has nearly all
 * runs. No claim is refused, no tenant waits behind the long queue of another, and each run is run once, also when each
 * engine in turn is killed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { getState, type Store, submit } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { formatCounts } from "../format-counts.ts";
import { concurrency, type EngineCounts, type EngineMessage } from "./engine-process.ts";
import { createQueuedGraph, listQueuedRuns } from "./queued-graph.ts";

const program = fileURLToPath(new URL("./engine-process.ts", import.meta.url));

const engineCount = 8;

/** Longest time for all runs. */
const maxMs = 600_000;

interface EngineChild {
  readonly child: ChildProcess;
  readonly ready: Promise<unknown>;
  readonly counts: Promise<EngineCounts>;
}

/** Queues runs and lets eight engines run them, once without and once with a kill of each engine; true when sound. */
export async function runEngines(runs: number): Promise<boolean> {
  const violations = [...(await runOnce(runs, "running")), ...(await runOnce(runs, "killed"))];
  for (const line of violations) console.log(line);
  console.log(`engines: ${engineCount} processes, ${runs} runs of 100 tenants, violations: ${violations.length}`);
  return violations.length === 0;
}

async function runOnce(runs: number, mode: "running" | "killed"): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), "statewright-engines-"));
  const store = sqliteStore(join(folder, "shared.db"), { durability: "normal" });
  try {
    await queueRuns(store, runs);
    const engines = Array.from({ length: engineCount }, () => startEngine(folder));
    await Promise.all(engines.map(({ ready }) => ready));
    for (const engine of engines) engine.child.stdin?.write("start\n");
    if (mode === "killed") await killEachEngine(store, folder, { runs, engines });
    const isComplete = await waitForDone(store, runs);
    const counts = await Promise.all(engines.map(stopEngine));
    const started = readFileSync(join(folder, "started.txt"), "utf8").trimEnd().split("\n");
    console.log(`engines, ${mode}: ${formatCounts(sumCounts(counts, runs))}`);
    const found = isComplete
      ? await checkRuns(store, { runs, started, mode })
      : [`${mode}: the runs did not end in time`];
    const refused = sum(counts, "refused");
    // The claims of a killed engine are free again.
    const unfair = mode === "killed" ? 0 : sum(counts, "unfair");
    return [
      ...found,
      ...(refused === 0 ? [] : [`${mode}: expected no refused claim, got ${refused}`]),
      ...(unfair === 0 ? [] : [`${mode}: expected no short queue behind the long one, got ${unfair} runs`]),
    ];
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function queueRuns(store: Store, runs: number): Promise<void> {
  const graph = createQueuedGraph(() => undefined);
  const queued = listQueuedRuns(runs);
  for (let from = 0; from < queued.length; from += 250)
    await Promise.all(
      queued
        .slice(from, from + 250)
        .map(({ thread, tenant }) => submit(graph, { store, thread, tenant, input: { name: thread, n: 0 } })),
    );
}

function startEngine(folder: string): EngineChild {
  const child = spawn(process.execPath, ["--no-warnings", program, folder], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { NODE_COMPILE_CACHE: join(folder, "compiled"), ...process.env },
  });
  const lines = createInterface({ input: child.stdout });
  const ready = once(lines, "line");
  const counts = new Promise<EngineCounts>((resolve, reject) => {
    lines.on("line", (text) => {
      const message = JSON.parse(text) as EngineMessage;
      if (message.kind === "stopped") resolve(message.counts);
    });
    child.once("close", (code, signal) => reject(new Error(`an engine ended with ${String(code ?? signal)}`)));
  });
  // The counts of a killed engine are not read.
  counts.catch(() => undefined);
  return { child, ready, counts };
}

async function stopEngine({ child, counts }: EngineChild): Promise<EngineCounts> {
  child.stdin?.write("stop\n");
  const stopped = await counts;
  child.stdin?.end();
  return stopped;
}

/** Kills one engine after another while runs are left, and starts another in its place. */
async function killEachEngine(
  store: Store,
  folder: string,
  { runs, engines }: { readonly runs: number; readonly engines: EngineChild[] },
): Promise<void> {
  for (let nth = 0; nth < engineCount; nth++) {
    await waitForDone(store, Math.floor(((nth + 1) * runs) / (engineCount + 2)));
    const killed = engines[nth];
    const ended = killed === undefined ? undefined : once(killed.child, "close");
    killed?.child.kill("SIGKILL");
    await ended;
    engines[nth] = startEngine(folder);
  }
}

async function waitForDone(store: Store, count: number): Promise<boolean> {
  const end = performance.now() + maxMs;
  while (performance.now() < end) {
    const { byStatus } = await store.countRuns();
    if (byStatus.done >= count) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

function sum(counts: readonly EngineCounts[], name: keyof EngineCounts): number {
  return counts.reduce((total, each) => total + each[name], 0);
}

function sumCounts(counts: readonly EngineCounts[], runs: number): Readonly<Record<string, number>> {
  return {
    "CPU per run in µs": Math.round(sum(counts, "cpuUs") / runs),
    "requests for runs": sum(counts, "requests"),
    "runs claimed": sum(counts, "claimedRuns"),
    "single claims": sum(counts, "claims"),
    "single claims refused": sum(counts, "refused"),
    "waits for the file": sum(counts, "busyWaits"),
  };
}

async function checkRuns(
  store: Store,
  {
    runs,
    started,
    mode,
  }: { readonly runs: number; readonly started: readonly string[]; readonly mode: "running" | "killed" },
): Promise<readonly string[]> {
  const violations: string[] = [];
  const graph = createQueuedGraph(() => undefined);
  for (const { thread } of listQueuedRuns(runs)) {
    const { state, status } = await getState(graph, { store, thread });
    if (status !== "done" || state.n !== 1) violations.push(`${mode}: ${thread} is ${status}, and counted ${state.n}`);
  }
  const repeated = started.length - new Set(started).size;
  const maxRepeated = mode === "killed" ? engineCount * concurrency : 0;
  if (repeated > maxRepeated)
    violations.push(`${mode}: expected at most ${maxRepeated} repeated starts, got ${repeated}`);
  const { faults } = (await store.verify?.()) ?? { faults: [] };
  if (faults.length > 0) violations.push(`${mode}: ${JSON.stringify(faults.slice(0, 3))}`);
  return violations;
}
