/**
 * `npm run bench -- kills`: kills the same run in the same ways in Statewright and in LangGraph.js, and then measures
 * double resumes.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadPeers } from "../peers/langgraph.ts";
import { describeMachine } from "../report.ts";
import { writeBetweenMarks } from "../written-page.ts";
import { type KillCounts, measureKills } from "./measure-kills.ts";
import { measureRaces, type RaceCounts, type RaceKind } from "./measure-races.ts";
import { type ContenderId, contenders, isPeer } from "./program.ts";

const help = `npm run bench -- kills [options]
  --runs 25      runs per contender
  --seed 1       seed of the first run; run n has seed + n
  --races 20     double resumes per contender and kind
  --no-peers     Statewright only, installs nothing
  --write        writes the tables into docs/guarantees.md`;

const page = new URL("../../../../docs/guarantees.md", import.meta.url);

/** Contenders of the races. The effect modes that differ only after a kill are left out. */
const racingIds: readonly ContenderId[] = ["asked", "tasks", "tool-node"];
const raceKinds: readonly RaceKind[] = ["two processes", "one process"];

/** Counts of all kills and races. */
export interface KillReport {
  readonly kills: readonly (readonly [name: string, counts: KillCounts])[];
  readonly races: readonly (readonly [name: string, kind: RaceKind, counts: RaceCounts])[];
  /** Violations of Statewright's guarantees, each with the command that reproduces the violation. */
  readonly violations: readonly string[];
}

/** Runs the command. Returns the exit code. */
export async function runKills(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    process.stderr.write(`${options}\n`);
    return options === help ? 0 : 2;
  }
  const { langgraphEntry, notices } = options.peers
    ? await loadPeers()
    : { langgraphEntry: undefined, notices: ["Peers are excluded."] };
  const report = await measureAll(options, langgraphEntry);
  const command = ["npm run bench -- kills", ...args].join(" ");
  const facts = `Counted ${new Date().toISOString().slice(0, 10)} with \`${command}\` on ${describeMachine()}, Node ${process.versions.node}, seeds ${options.seed} to ${options.seed + options.runs - 1}. ${notices.join(" ")}`;
  const text = `${facts}\n\n${formatKillTable(report)}\n\n${formatRaceTable(report)}`;
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

/** Returns the options, or the text to print for `--help` or an invalid option. */
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
      if (!/^\d{1,6}$/.test(value)) return `--${name}: expected a whole number, got ${value}`;
    return { ...values, runs: Number(runs), seed: Number(seed), races: Number(races) };
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${help}`;
  }
}

/** Without the URL of the peer's module, only Statewright is measured. */
export async function measureAll(
  { runs, seed, races }: Pick<Options, "runs" | "seed" | "races">,
  langgraphEntry: string | undefined,
): Promise<KillReport> {
  const home = mkdtempSync(join(tmpdir(), "statewright-kills-"));
  const entry = langgraphEntry ?? "";
  const available = contenders.filter(({ id }) => langgraphEntry !== undefined || !isPeer(id));
  const report = { kills: [] as [string, KillCounts][], races: [] as [string, RaceKind, RaceCounts][] };
  const violations: string[] = [];
  try {
    for (const { id, name } of available) {
      process.stderr.write(`${name}: kills ...\n`);
      const counts = await measureKills(id, { runs, seed, home, entry });
      report.kills.push([name, counts]);
      if (!isPeer(id))
        for (const failed of counts.faults)
          violations.push(`${name}: ${failed.fault} (npm run bench -- kills --seed ${failed.seed} --runs 1)`);
    }
    for (const { id, name } of available.filter((each) => racingIds.includes(each.id))) {
      for (const kind of raceKinds) {
        process.stderr.write(`${name}: double resumes, ${kind} ...\n`);
        const counts = await measureRaces(id, { races, kind, home, entry });
        report.races.push([name, kind, counts]);
        if (!isPeer(id) && counts.chargedTwice + counts.neverCharged > 0)
          violations.push(`${name}: not every one of ${races} double resumes by ${kind} charged exactly once`);
      }
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  return { ...report, violations };
}

function formatKillTable({ kills }: KillReport): string {
  const rows = kills.map(
    ([name, { runs, kills: processKills, repeated, twice, lost, wrongEnd: wrongEnds, inDoubt: doubts }]) =>
      [name, runs, processKills, repeated, twice, lost, wrongEnds, doubts].join(" | "),
  );
  return formatTable(
    "| runs | kills | action called again | done twice | never done | wrong result, or none | interrupt for a call in doubt",
    rows,
  );
}

function formatRaceTable({ races }: KillReport): string {
  const rows = races.map(([name, kind, { races: all, chargedTwice, neverCharged, outcomes: countByOutcome }]) => {
    const outcomes = Object.entries(countByOutcome)
      .sort(([, one], [, other]) => other - one)
      .map(([label, times]) => `${label}: ${times}`);
    return [name, kind, all, chargedTwice, neverCharged, outcomes.join("; ")].join(" | ");
  });
  return formatTable("| two resumes by | races | charged twice | never charged | outcomes of the two resumes", rows);
}

/** The first column has no header. */
function formatTable(head: string, rows: readonly string[]): string {
  const columns = head.split("|").length;
  return [`|  ${head} |`, `|${"---|".repeat(columns)}`, ...rows.map((row) => `| ${row} |`)].join("\n");
}
