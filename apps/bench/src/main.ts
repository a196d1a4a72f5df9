/** Command `npm run bench`: options, measurement, output. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Contender } from "./case.ts";
import type { CaseReport, Report } from "./case-report.ts";
import { createCases } from "./cases/all.ts";
import { listFailures } from "./check.ts";
import { runGuard } from "./guard/guard.ts";
import { runKills } from "./kills/run-kills.ts";
import { measureLeaks } from "./leaks.ts";
import { measureLoad } from "./load/load.ts";
import { measureCase } from "./measure.ts";
import { loadAgentPeers } from "./peers/agents.ts";
import { loadBundler } from "./peers/esbuild.ts";
import { defaultRelease, loadPeers, noAgents, noPeers, type Peers } from "./peers/langgraph.ts";
import { installOwn } from "./peers/own-packages.ts";
import { loadServerPeers, noServers } from "./peers/servers.ts";
import { runProfile } from "./profile/run-profile.ts";
import { describeMachine, toMarkdown, toText } from "./report.ts";
import { measureRetainedHeap } from "./retained-heap.ts";
import { openRunner } from "./runner.ts";
import { startContender } from "./start-contender.ts";
import { writeBetweenMarks } from "./written-page.ts";

const help = `npm run bench -- [options]
  kills          kills and double resumes of the same run in Statewright and in the peer; see kills --help
  guard          compares six hot paths with recorded values; guard --write records new values
  profile        time of the hot paths by part; see profile --help
  --only B1,B3   runs these cases only; "leaks" and "load" are cases too
  --rounds 7     rounds per contender
  --no-peers     Statewright and limits only; B11 and B17 still install their own tools and packages
  --langgraph ${defaultRelease}  uses another release of LangGraph.js
  --no-growth    skips the sizes 1x, 2x, 4x, 8x
  --json         prints JSON
  --markdown     prints the tables as docs/performance.md has them
  --write        writes docs/performance.md
  --check        fails if a ratio or growth is above its limit`;

const page = new URL("../../../docs/performance.md", import.meta.url);
const leakRuns = 30_000;
const retainedHeapUnits = 40_000;
/**
 * Each count is double the previous count, for the fit of the growth: up to 2,000 active threads and 10,000 waiting
 * runs.
 */
const loadCounts = { active: [250, 500, 1_000, 2_000], waiting: [1_250, 2_500, 5_000, 10_000] };

/** Runs the bench. Returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  if (args[0] === "kills") return runKills(args.slice(1));
  if (args[0] === "guard") return runGuard(args.slice(1));
  if (args[0] === "profile") return runProfile(args.slice(1));
  const options = readOptions(args);
  if (typeof options === "string") {
    process.stderr.write(`${options}\n`);
    return options === help ? 0 : 2;
  }
  const report = await measureAll(options, args);
  process.stdout.write(`${formatReport(report, options)}\n`);
  if (options.write) writeBetweenMarks(page, "npm run bench -- --write", toMarkdown(report));
  const failed = options.check ? listFailures(report) : [];
  for (const line of failed) process.stderr.write(`bench: ${line}\n`);
  return failed.length > 0 ? 1 : 0;
}

function formatReport(report: Report, { json, markdown }: Options): string {
  if (json) return JSON.stringify(report, null, 2);
  return markdown ? toMarkdown(report) : toText(report);
}

const warmUpMs = 3_000;

interface Options {
  readonly only: readonly string[] | undefined;
  readonly rounds: number;
  readonly peers: boolean;
  readonly langgraph: string;
  readonly growth: boolean;
  readonly json: boolean;
  readonly markdown: boolean;
  readonly write: boolean;
  readonly check: boolean;
}

/** Returns the options, or the text to print for `--help` or an invalid option. */
function readOptions(args: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      allowNegative: true,
      options: {
        help: { type: "boolean", default: false },
        only: { type: "string" },
        rounds: { type: "string", default: "7" },
        peers: { type: "boolean", default: true },
        langgraph: { type: "string", default: defaultRelease },
        growth: { type: "boolean", default: true },
        json: { type: "boolean", default: false },
        markdown: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        check: { type: "boolean", default: false },
      },
    });
    if (values.help) return help;
    const rounds = Number(values.rounds);
    if (!Number.isInteger(rounds) || rounds < 1) return `--rounds: expected a whole number ≥ 1, got ${values.rounds}`;
    return { ...values, rounds, only: values.only?.split(",") };
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${help}`;
  }
}

async function measureAll(options: Options, args: readonly string[]): Promise<Report> {
  const { rounds, growth } = options;
  const isSelected = (id: string): boolean => isCaseSelected(id, options);
  const peers = await loadSelectedPeers(options);
  const cases: CaseReport[] = [];
  for (const each of createCases(peers)) {
    if (!isCaseSelected(each.id, options)) continue;
    process.stderr.write(`${each.id} ...\n`);
    const { id, title, unit, budget, checks = [], amounts = [], maxGrowth: maxGrowthOfCase } = each;
    const open = (contender: Contender) =>
      contender.ownProcesses === true
        ? openRunner(contender)
        : startContender(each.id, contender, peers.langgraphEntry);
    const contenders = await measureCase(each, { rounds, warmUpMs, growth, open });
    cases.push({
      id,
      title,
      unit,
      budget,
      checks,
      amounts,
      contenders,
      ...(maxGrowthOfCase === undefined ? {} : { maxGrowth: maxGrowthOfCase }),
    });
  }
  for (const each of ["leaks", "load"]) if (isSelected(each)) process.stderr.write(`${each} ...\n`);
  return {
    date: new Date().toISOString().slice(0, 10),
    command: ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" "),
    machine: describeMachine(),
    versions: `Node ${process.versions.node}, V8 ${process.versions.v8}, Statewright ${getOwnVersion()}`,
    peers: peers.notices,
    cases,
    leaks: isSelected("leaks") ? await measureLeaks(leakRuns) : undefined,
    retainedHeap: isSelected("leaks") ? await measureRetainedHeap(retainedHeapUnits) : undefined,
    load: isSelected("load") ? await measureLoad(loadCounts) : undefined,
  };
}

/** Returns true for a case selected by its own id or by the id of its budget. */
function isCaseSelected(id: string, { only }: Options): boolean {
  return only === undefined || only.some((each) => id === each || id.startsWith(`${each} `));
}

/** Returns true if at least one case of the budget is selected. */
function isBudgetSelected(budget: string, options: Options): boolean {
  return isCaseSelected(budget, options) || (options.only ?? []).some((each) => each.startsWith(`${budget} `));
}

/** Loads only the peers and tools of the selected cases. */
async function loadSelectedPeers(options: Options): Promise<Peers> {
  const isSelected = (...ids: readonly string[]): boolean => ids.some((id) => isBudgetSelected(id, options));
  const withAgents = options.peers && isSelected("B12", "B14", "B15", "B16", "B17", "B22");
  const agents = withAgents ? await loadAgentPeers() : noAgents;
  const peers = options.peers ? await loadPeers(agents, options.langgraph) : noPeers;
  const withServers = options.peers && ["B23 list", "B23 run"].some((id) => isCaseSelected(id, options));
  const { servers, notices: serverNotices } = withServers ? await loadServerPeers() : noServers;
  const bundler = isSelected("B11", "B22") ? await loadBundler() : undefined;
  const own = isSelected("B17", "B22") ? await installOwn() : undefined;
  const notices = [bundler, own].filter((each) => typeof each === "string");
  return {
    ...peers,
    servers,
    bundler: typeof bundler === "string" ? undefined : bundler,
    installed: typeof own === "object" ? [own, ...peers.installed] : peers.installed,
    notices: [...peers.notices, ...serverNotices, ...notices],
  };
}

function getOwnVersion(): string {
  const file = new URL("../../../packages/statewright/package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
