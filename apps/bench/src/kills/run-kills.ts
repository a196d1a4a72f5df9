/** `npm run bench -- kills`: the same run, killed in the same ways, by Statewright and by LangGraph.js; then double resumes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadPeers } from "../peers/langgraph.ts";
import { machine } from "../report.ts";
import { writeBetweenMarks } from "../written-page.ts";
import { type KillCounts, measureKills } from "./measure-kills.ts";
import { measureRaces, type RaceCounts, type RaceKind } from "./measure-races.ts";
import { type ContenderId, contenders, isPeer } from "./program.ts";

const help = `npm run bench -- kills [options]
  --runs 25      runs of each contender
  --seed 1       the first run's seed; run n has seed + n
  --races 20     double resumes of each contender and kind
  --no-peers     ours only, nothing is installed
  --write        write the tables into docs/guarantees.md`;

const page = new URL("../../../../docs/guarantees.md", import.meta.url);

/** In a race nobody asks whether a call happened: these differ in what they do about two resumes. */
const racing: readonly ContenderId[] = ["asked", "tasks", "tool-node"];
const raceKinds: readonly RaceKind[] = ["two processes", "one process"];

/** Everything that was counted. */
export interface KillReport {
  readonly kills: readonly (readonly [name: string, counts: KillCounts])[];
  readonly races: readonly (readonly [name: string, kind: RaceKind, counts: RaceCounts])[];
  /** What must not happen to ours, with the command that repeats it. */
  readonly violations: readonly string[];
}

/** Run the command; gives the exit code. */
export async function runKills(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    process.stderr.write(`${options}\n`);
    return options === help ? 0 : 2;
  }
  const { langgraphEntry, said } = options.peers
    ? await loadPeers()
    : { langgraphEntry: undefined, said: ["Peers were left out."] };
  const report = await measureAll(options, langgraphEntry);
  const command = ["npm run bench -- kills", ...args].join(" ");
  const facts = `Counted ${new Date().toISOString().slice(0, 10)} with \`${command}\` on ${machine()}, Node ${process.versions.node}, seeds ${options.seed} to ${options.seed + options.runs - 1}. ${said.join(" ")}`;
  const text = `${facts}\n\n${killTable(report)}\n\n${raceTable(report)}`;
  process.stdout.write(`${text}\n`);
  if (options.write) writeBetweenMarks(page, "npm run bench -- kills --write", text);
  for (const line of report.violations) process.stderr.write(`bench: ${line}\n`);
  return report.violations.length > 0 ? 1 : 0;
}

interface Options {
  readonly runs: number;
  readonly seed: number;
  readonly races: number;
  readonly peers: boolean;
  readonly write: boolean;
}

/** The options, or what to print instead. */
function readOptions(args: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      allowNegative: true,
      options: {
        help: { type: "boolean", default: false },
        runs: { type: "string", default: "25" },
        seed: { type: "string", default: "1" },
        races: { type: "string", default: "20" },
        peers: { type: "boolean", default: true },
        write: { type: "boolean", default: false },
      },
    });
    if (values.help) return help;
    const { runs, seed, races } = values;
    for (const [name, value] of Object.entries({ runs, seed, races }))
      if (!/^\d{1,6}$/.test(value)) return `--${name} takes a whole number, not ${value}`;
    return { ...values, runs: Number(runs), seed: Number(seed), races: Number(races) };
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${help}`;
  }
}

/** Without the module of the peer, ours only. */
export async function measureAll(
  { runs, seed, races }: Pick<Options, "runs" | "seed" | "races">,
  langgraphEntry: string | undefined,
): Promise<KillReport> {
  const home = mkdtempSync(join(tmpdir(), "statewright-kills-"));
  const entry = langgraphEntry ?? "";
  const there = contenders.filter(({ id }) => langgraphEntry !== undefined || !isPeer(id));
  const report = { kills: [] as [string, KillCounts][], races: [] as [string, RaceKind, RaceCounts][] };
  const violations: string[] = [];
  try {
    for (const { id, name } of there) {
      process.stderr.write(`${name}: kills ...\n`);
      const counts = await measureKills(id, { runs, seed, home, entry });
      report.kills.push([name, counts]);
      if (!isPeer(id))
        for (const wrong of counts.wrong)
          violations.push(`${name}: ${wrong.what} (npm run bench -- kills --seed ${wrong.seed} --runs 1)`);
    }
    for (const { id, name } of there.filter((each) => racing.includes(each.id))) {
      for (const kind of raceKinds) {
        process.stderr.write(`${name}: double resumes, ${kind} ...\n`);
        const counts = await measureRaces(id, { races, kind, home, entry });
        report.races.push([name, kind, counts]);
        if (!isPeer(id) && counts.chargedTwice + counts.neverCharged > 0)
          violations.push(`${name}: of ${races} double resumes by ${kind} not all charged once`);
      }
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return { ...report, violations };
}

function killTable({ kills }: KillReport): string {
  const rows = kills.map(([name, { runs, deaths, repeated, twice, lost, otherEnd, asked }]) =>
    [name, runs, deaths, repeated, twice, lost, otherEnd, asked].join(" | "),
  );
  return table(
    "| runs | deaths | an errand was called again | done twice | never done | another end, or none | a person was asked",
    rows,
  );
}

function raceTable({ races }: KillReport): string {
  const rows = races.map(([name, kind, { races: all, chargedTwice, neverCharged, told }]) => {
    const outcomes = Object.entries(told)
      .sort(([, one], [, other]) => other - one)
      .map(([both, times]) => `${both}: ${times}`);
    return [name, kind, all, chargedTwice, neverCharged, outcomes.join("; ")].join(" | ");
  });
  return table("| two resumes by | races | charged twice | never charged | what the two were told", rows);
}

/** The first column has no head. */
function table(head: string, rows: readonly string[]): string {
  const columns = head.split("|").length;
  return [`|  ${head} |`, `|${"---|".repeat(columns)}`, ...rows.map((row) => `| ${row} |`)].join("\n");
}
