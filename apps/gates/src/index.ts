/**
 * Gates: invariants checked by long-running commands, beyond the tests.
 *
 * ```
 * npm run gates -- simulate [--seeds 10000] [--from 0] | --minutes 30 | --seed 7
 * npm run gates -- mutants [--seeds 10000] [--only "part of a name"]
 * npm run gates -- kills [--count 1000] | --minutes 10
 * npm run gates -- pairs [--every 1]
 * npm run gates -- resumes [--count 10000]
 * npm run gates -- recovery [--count 1000]
 * npm run gates -- calls [--count 100000] [--from 0]
 * npm run gates -- aborts [--count 10000] [--from 0]
 * npm run gates -- lines [--count 100000] [--from 0]
 * npm run gates -- requests [--count 20000] [--from 0]   generated requests to each protocol of the server
 * npm run gates -- rows [--count 100000] [--from 0]
 * npm run gates -- conversations [--count 1000] [--from 0]
 * npm run gates -- machines [--seeds 20000] [--from 0] | --seed 7
 * npm run gates -- deliveries [--seeds 1000] [--from 0]   an orchestrator that loses, doubles and reorders deliveries
 * npm run gates -- owner-lock   every way to touch the files of an open store; writes docs/design/owner-lock.md
 * npm run gates -- large [--count 400]   export and deletion of a thread of 400 MB, and a queue of 3,000 inputs
 * npm run gates -- servers [--count 50]   server processes that are killed under clients of each protocol, that share a file
 *                            behind a balancer, and that replace each other
 * npm run gates -- engines [--count 5000]   eight engines on one file, with the queued runs of 100 tenants, and a kill of each
 * npm run gates -- terminals   a worker, a watcher and a desk on one file: watched words, a cancel, a kill
 * npm run gates -- packs     the packed packages in an empty project, and all programs of the docs with them; needs the
 *                            package registry
 * npm run gates -- deploy    the steps of docs/deploy.md: fresh folder, empty environment, another user, read-only code;
 *                            needs the package registry
 * npm run gates -- vitests   the packed test kit in the latest vitest 4 and 5; needs the package registry
 * npm run gates -- browser   pages of the examples in a real Chromium; needs chromium and the package registry
 * npm run gates -- clients   unmodified clients of other projects against a server in another process; needs the
 *                            package registry
 * npm run gates -- whole     the full matrices that `npm test` samples
 * npm run gates -- ci        the share of .ci/run: 2,000 simulations, 200 kills, 5,000 hostile calls, 10,000 aborts,
 *                            5,000 plugin calls with hostile lines, 2,000 generated requests to each protocol of the server, 5,000 threads with hostile rows, 300 conversations, 60 seeds of deliveries,
 *                            2,000 machines (31 of them in processes that SIGKILL ends), 1,000 queued runs of eight engines, two kills of a server for each of its protocols, every hundredth pair
 *                            of crashes, and the full tests
 * ```
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { findChromium } from "./browser/open-browser.ts";
import { runAborts, runCalls } from "./calls/run-calls.ts";
import { runConversations } from "./conversations/run-conversations.ts";
import { runDeliveries } from "./deliveries/run-deliveries.ts";
import { runEngines } from "./engines/run-engines.ts";
import { runKills } from "./kills/run-kills.ts";
import { runLarge } from "./large/run-large.ts";
import { runLines } from "./lines/run-lines.ts";
import { runMachine, runMachines } from "./machines/run-machines.ts";
import { runMutants } from "./mutants/run-mutants.ts";
import { runRequests } from "./requests/run-requests.ts";
import { runRows } from "./rows/run-rows.ts";
import { runFullTests, runGateTests, runScript, runTests } from "./run-tests.ts";
import { simulateMany, simulateOne } from "./simulate.ts";
import { runVitests } from "./vitests/run-vitests.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: "string" },
    from: { type: "string" },
    seed: { type: "string" },
    minutes: { type: "string" },
    only: { type: "string" },
    count: { type: "string" },
    every: { type: "string" },
  },
});

function readNumber(name: "seeds" | "from" | "seed" | "minutes" | "count" | "every"): number | undefined {
  const text = values[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0) return value;
  console.error(`gates: --${name}: expected a number ≥ 0, got ${text}`);
  process.exit(1);
}

const minutes = readNumber("minutes");
const gates: Readonly<Record<string, () => Promise<boolean>>> = {
  simulate: () => {
    const seed = readNumber("seed");
    return seed === undefined
      ? simulateMany({ from: readNumber("from") ?? 0, seeds: readNumber("seeds") ?? 10_000, minutes })
      : simulateOne(seed);
  },
  mutants: () => runMutants({ seeds: readNumber("seeds") ?? 10_000, only: values.only }),
  kills: () => runKills({ kills: readNumber("count") ?? 1_000, minutes, seed: readNumber("seed") ?? 1 }),
  pairs: () => runPairs(readNumber("every") ?? 1),
  resumes: () =>
    runTests("packages/statewright", ["double-resume"], { STATEWRIGHT_RACES: String(readNumber("count") ?? 10_000) }),
  recovery: () =>
    runTests("packages/statewright", ["recover-many"], {
      STATEWRIGHT_UNFINISHED: String(readNumber("count") ?? 1_000),
    }),
  calls: () => runCalls(readNumber("count") ?? 100_000, readNumber("from") ?? 0),
  aborts: () => runAborts(readNumber("count") ?? 10_000, readNumber("from") ?? 0),
  lines: () => runLines(readNumber("count") ?? 100_000, readNumber("from") ?? 0),
  requests: () => runRequests(readNumber("count") ?? 20_000, readNumber("from") ?? 0),
  rows: () => runRows(readNumber("count") ?? 100_000, readNumber("from") ?? 0),
  conversations: () => runConversations(readNumber("count") ?? 1_000, readNumber("from") ?? 0),
  machines: () => {
    const seed = readNumber("seed");
    return seed === undefined ? runMachines(readNumber("seeds") ?? 20_000, readNumber("from") ?? 0) : runMachine(seed);
  },
  deliveries: () => runDeliveries(readNumber("seeds") ?? 1_000, readNumber("from") ?? 0),
  "owner-lock": () => runScript("packages/sqlite/test/owner-lock/report.ts", ["--write"]),
  large: () => runLarge(readNumber("count") ?? 400),
  servers: () => runServers(readNumber("count") ?? 50, readNumber("seed") ?? 1),
  engines: () => runEngines(readNumber("count") ?? 5_000),
  terminals: () => runGateTests("terminals"),
  browser: async () => {
    if (findChromium() !== undefined) return await runGateTests("browser");
    console.log("browser: not run: no Chromium found. Install the package chromium, then npm run gates -- browser.");
    return true;
  },
  clients: () => runGateTests("clients"),
  packs: () => runGateTests("packs"),
  deploy: () => runGateTests("deploy"),
  vitests: runVitests,
  whole: runFullTests,
  ci: async () => {
    const simulated = await simulateMany({ from: 0, seeds: 2_000, minutes: undefined });
    const killed = await runKills({ kills: 200, minutes: undefined, seed: 1 });
    const calls = await runCalls(5_000, 0);
    const aborts = await runAborts(10_000, 0);
    const lines = await runLines(5_000, 0);
    const requests = await runRequests(2_000, 0);
    const rows = await runRows(5_000, 0);
    const conversations = await runConversations(300, 0);
    const machines = await runMachines(2_000, 0);
    const engines = await runEngines(1_000);
    const servers = await runServers(2, 1);
    const deliveries = await runDeliveries(60, 0);
    const pairs = await runPairs(100);
    const areSound =
      killed &&
      simulated &&
      calls &&
      aborts &&
      lines &&
      requests &&
      rows &&
      conversations &&
      machines &&
      engines &&
      servers &&
      deliveries &&
      pairs;
    return (await runFullTests()) && areSound;
  },
};

/** Kills a server `count` times for each of its protocols, and runs a share of the other tests. */
function runServers(count: number, seed: number): Promise<boolean> {
  return runGateTests("servers", { STATEWRIGHT_SERVER_KILLS: String(count), STATEWRIGHT_SERVER_SEED: String(seed) });
}

function runPairs(every: number): Promise<boolean> {
  return runTests("packages/statewright", ["crash-pairs"], { STATEWRIGHT_PAIRS: String(every) });
}

const gate = gates[positionals[0] ?? ""];
if (gate === undefined) {
  console.error(`gates: expected one of ${Object.keys(gates).join(", ")}`);
  process.exit(1);
}
process.exitCode = (await gate()) ? 0 : 1;
