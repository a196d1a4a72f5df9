/**
 * The gates: what must hold whatever happens, in commands that go further than the tests.
 *
 *   npm run gates -- simulate [--seeds 10000] [--from 0] | --minutes 30 | --seed 7
 *   npm run gates -- mutants [--seeds 10000] [--only "a part of a name"]
 *   npm run gates -- kills [--count 1000] | --minutes 10
 *   npm run gates -- pairs [--every 1]
 *   npm run gates -- resumes [--count 10000]
 *   npm run gates -- recovery [--count 1000]
 *   npm run gates -- calls [--count 100000] [--from 0]
 *   npm run gates -- aborts [--count 10000] [--from 0]
 *   npm run gates -- lines [--count 100000] [--from 0]
 *   npm run gates -- rows [--count 100000] [--from 0]
 *   npm run gates -- conversations [--count 1000] [--from 0]
 *   npm run gates -- vitests   the test kit, packed, in the newest vitest 4 and 5: needs the package registry
 *   npm run gates -- whole     what `npm test` runs a share of
 *   npm run gates -- ci        the share of .ci/run: 2,000 simulations, 200 kills, 5,000 hostile calls, 10,000 aborts, 5,000 calls
 *                              of plugins that write hostile lines, 5,000 threads with hostile rows, 300 conversations,
 *                              every hundredth pair of deaths, and the whole of the tests
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { runAborts, runCalls } from "./calls/run-calls.ts";
import { runConversations } from "./conversations/run-conversations.ts";
import { runKills } from "./kills/run-kills.ts";
import { runLines } from "./lines/run-lines.ts";
import { runMutants } from "./mutants/run-mutants.ts";
import { runRows } from "./rows/run-rows.ts";
import { runTests, runWhole } from "./run-tests.ts";
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

function number(name: "seeds" | "from" | "seed" | "minutes" | "count" | "every"): number | undefined {
  const given = values[name];
  if (given === undefined) return undefined;
  const read = Number(given);
  if (Number.isFinite(read) && read >= 0) return read;
  console.error(`gates: --${name} ${given} is no number`);
  process.exit(1);
}

const minutes = number("minutes");
const gates: Readonly<Record<string, () => Promise<boolean>>> = {
  simulate: () => {
    const seed = number("seed");
    return seed === undefined
      ? simulateMany({ from: number("from") ?? 0, seeds: number("seeds") ?? 10_000, minutes })
      : simulateOne(seed);
  },
  mutants: () => runMutants({ seeds: number("seeds") ?? 10_000, only: values.only }),
  kills: () => runKills({ kills: number("count") ?? 1_000, minutes, seed: number("seed") ?? 1 }),
  pairs: () => runPairs(number("every") ?? 1),
  resumes: () =>
    runTests("packages/statewright", ["double-resume"], { STATEWRIGHT_RACES: String(number("count") ?? 10_000) }),
  recovery: () =>
    runTests("packages/statewright", ["recover-many"], { STATEWRIGHT_UNFINISHED: String(number("count") ?? 1_000) }),
  calls: () => runCalls(number("count") ?? 100_000, number("from") ?? 0),
  aborts: () => runAborts(number("count") ?? 10_000, number("from") ?? 0),
  lines: () => runLines(number("count") ?? 100_000, number("from") ?? 0),
  rows: () => runRows(number("count") ?? 100_000, number("from") ?? 0),
  conversations: () => runConversations(number("count") ?? 1_000, number("from") ?? 0),
  vitests: runVitests,
  whole: runWhole,
  ci: async () => {
    const simulated = await simulateMany({ from: 0, seeds: 2_000, minutes: undefined });
    const killed = await runKills({ kills: 200, minutes: undefined, seed: 1 });
    const calls = await runCalls(5_000, 0);
    const aborts = await runAborts(10_000, 0);
    const lines = await runLines(5_000, 0);
    const rows = await runRows(5_000, 0);
    const conversations = await runConversations(300, 0);
    const pairs = await runPairs(100);
    return (await runWhole()) && killed && simulated && calls && aborts && lines && rows && conversations && pairs;
  },
};

function runPairs(every: number): Promise<boolean> {
  return runTests("packages/statewright", ["crash-pairs"], { STATEWRIGHT_PAIRS: String(every) });
}

const gate = gates[positionals[0] ?? ""];
if (gate === undefined) {
  console.error(`gates: one of ${Object.keys(gates).join(", ")}`);
  process.exit(1);
}
process.exitCode = (await gate()) ? 0 : 1;
