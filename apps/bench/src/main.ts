/** The command: what it is asked, what it measures, what it prints. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Contender } from "./case.ts";
import { allCases } from "./cases/all.ts";
import { failures } from "./check.ts";
import { runGuard } from "./guard/guard.ts";
import { runKills } from "./kills/run-kills.ts";
import { findLeaks } from "./leaks.ts";
import { findLoad } from "./load/load.ts";
import { measureCase } from "./measure.ts";
import { loadAgentPeers } from "./peers/agents.ts";
import { loadBundler } from "./peers/esbuild.ts";
import { loadPeers, noAgents, noPeers, type Peers, usualRelease } from "./peers/langgraph.ts";
import { installOwn } from "./peers/own-packages.ts";
import { runProfile } from "./profile/run-profile.ts";
import { type CaseReport, machine, type Report, toMarkdown, toText } from "./report.ts";
import { findHeld } from "./retained-heap.ts";
import { runHere } from "./runner.ts";
import { runApart } from "./start-contender.ts";
import { writeBetweenMarks } from "./written-page.ts";

const help = `npm run bench -- [options]
  kills          kill runs of ours and of the peer in the same ways, and resume them twice; kills --help says more
  guard          six hot paths beside what was recorded of them; guard --write records
  profile        where the time of the hot paths goes; profile --help says more
  --only B1,B3   these cases only; "leaks" and "load" are two of them
  --rounds 7     rounds of each contender
  --no-peers     ours and the limits only; B11 and B17 still install what they weigh with
  --langgraph ${usualRelease}  another release of LangGraph.js in its place
  --no-growth    without the sizes 1x, 2x, 4x, 8x
  --json         print JSON
  --write        write docs/performance.md
  --check        fail when a ratio does not hold`;

const page = new URL("../../../docs/performance.md", import.meta.url);
const runsForLeaks = 30_000;
const unitsForHeld = 40_000;
/** Doubled, so that growth is seen; 1,000 are at work in the third, and 10,000 wait at the end. */
const threadsForLoad = { active: [250, 500, 1_000, 2_000], parked: [1_250, 2_500, 5_000, 10_000] };

/** Run the bench; gives the exit code. */
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
  process.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : `${toText(report)}\n`);
  if (options.write) writeBetweenMarks(page, "npm run bench -- --write", toMarkdown(report));
  const found = options.check ? failures(report) : [];
  for (const line of found) process.stderr.write(`bench: ${line}\n`);
  return found.length > 0 ? 1 : 0;
}

const warmUpMs = 3_000;

interface Options {
  readonly only: readonly string[] | undefined;
  readonly rounds: number;
  readonly peers: boolean;
  readonly langgraph: string;
  readonly growth: boolean;
  readonly json: boolean;
  readonly write: boolean;
  readonly check: boolean;
}

/** The options, or what to print instead. */
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
        langgraph: { type: "string", default: usualRelease },
        growth: { type: "boolean", default: true },
        json: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        check: { type: "boolean", default: false },
      },
    });
    if (values.help) return help;
    const rounds = Number(values.rounds);
    if (!Number.isInteger(rounds) || rounds < 1) return `--rounds takes a whole number from 1, not ${values.rounds}`;
    return { ...values, rounds, only: values.only?.split(",") };
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${help}`;
  }
}

async function measureAll(options: Options, args: readonly string[]): Promise<Report> {
  const { rounds, growth } = options;
  const wanted = (id: string): boolean => isCaseWanted(id, options);
  const peers = await loadAll(options);
  const cases: CaseReport[] = [];
  for (const each of allCases(peers)) {
    if (!isCaseWanted(each.id, options)) continue;
    process.stderr.write(`${each.id} ...\n`);
    const { id, title, unit, budget, checks = [], steepest } = each;
    const open = (contender: Contender) =>
      contender.elsewhere === true ? runHere(contender) : runApart(each.id, contender, peers.langgraphEntry);
    const contenders = await measureCase(each, { rounds, warmUpMs, growth, open });
    cases.push({ id, title, unit, budget, checks, contenders, ...(steepest === undefined ? {} : { steepest }) });
  }
  for (const each of ["leaks", "load"]) if (wanted(each)) process.stderr.write(`${each} ...\n`);
  return {
    date: new Date().toISOString().slice(0, 10),
    command: ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" "),
    machine: machine(),
    versions: `Node ${process.versions.node}, V8 ${process.versions.v8}, Statewright ${ownVersion()}`,
    peers: peers.said,
    cases,
    leaks: wanted("leaks") ? await findLeaks(runsForLeaks) : undefined,
    held: wanted("leaks") ? await findHeld(unitsForHeld) : undefined,
    load: wanted("load") ? await findLoad(threadsForLoad) : undefined,
  };
}

/** A case that was asked for by its id, or by that of the budget that it stands under. */
function isCaseWanted(id: string, { only }: Options): boolean {
  return only === undefined || only.some((each) => id === each || id.startsWith(`${each} `));
}

/** Whether something of a budget was asked for, if only one of its cases. */
function isWanted(budget: string, options: Options): boolean {
  return isCaseWanted(budget, options) || (options.only ?? []).some((each) => each.startsWith(`${budget} `));
}

/** What the cases that were asked for take, and nothing else. */
async function loadAll(options: Options): Promise<Peers> {
  const wanted = (...ids: readonly string[]): boolean => ids.some((id) => isWanted(id, options));
  const withAgents = options.peers && wanted("B12", "B14", "B15", "B16", "B17");
  const agents = withAgents ? await loadAgentPeers() : noAgents;
  const peers = options.peers ? await loadPeers(agents, options.langgraph) : noPeers;
  const bundler = wanted("B11") ? await loadBundler() : undefined;
  const own = wanted("B17") ? await installOwn() : undefined;
  const told = [bundler, own].filter((each) => typeof each === "string");
  return {
    ...peers,
    bundler: typeof bundler === "string" ? undefined : bundler,
    installed: typeof own === "object" ? [own, ...peers.installed] : peers.installed,
    said: [...peers.said, ...told],
  };
}

function ownVersion(): string {
  const file = new URL("../../../packages/statewright/package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
