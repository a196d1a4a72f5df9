/** Command that profiles the hot paths and reports the share of each part. */
import { Session } from "node:inspector/promises";
import { parseArgs } from "node:util";
import type { Case } from "../case.ts";
import { createCases } from "../cases/all.ts";
import { noPeers } from "../peers/langgraph.ts";
import { describeMachine } from "../report.ts";
import { writeBetweenMarks } from "../written-page.ts";
import { nameStatements } from "./named-statements.ts";
import { type CpuProfile, type HotFunction, listHottest, type Part, parts, sumTimeByPart } from "./parts.ts";

const help = `npm run bench -- profile [options]
  --only superstep,load   profiles these paths only
  --seconds 2             duration of each profile
  --write                 writes docs/performance.md`;

/** Case of each path, and the number of units per round. */
const paths = {
  superstep: { id: "B1", size: 2_000 },
  "saved superstep": { id: "B2", size: 1_000 },
  load: { id: "B7", size: 1_000 },
  "load of a waiting run": { id: "B9", size: 1_000 },
  "tool call": { id: "B18", size: 1_000 },
  stream: { id: "B18 updates", size: 5_000 },
  "agent turn": { id: "B14", size: 400 },
  "saved agent turn": { id: "B15", size: 400 },
} as const;

const page = new URL("../../../../docs/performance.md", import.meta.url);
const samplingUs = 100;
const warmUps = 3;
const maxHotFunctions = 5;

/** Profile of one path. */
export interface PathProfile {
  readonly name: string;
  readonly title: string;
  readonly times: ReadonlyMap<Part, number>;
  readonly hottest: readonly HotFunction[];
}

/** Runs the command. Returns the exit code. */
export async function runProfile(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean", default: false },
      only: { type: "string" },
      seconds: { type: "string", default: "2" },
      write: { type: "boolean", default: false },
    },
  });
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !Object.hasOwn(paths, name));
  if (values.help || unknown !== undefined) {
    if (unknown !== undefined)
      process.stderr.write(`--only: unknown path ${unknown}. Use one of: ${Object.keys(paths).join(", ")}\n`);
    process.stderr.write(`${help}\n`);
    return values.help ? 0 : 2;
  }
  const profiles = await profilePaths(Number(values.seconds) * 1_000, only);
  const text = toMarkdown(profiles);
  process.stdout.write(`${text}\n`);
  if (values.write) writeBetweenMarks(page, "npm run bench -- profile --write", text);
  return 0;
}

/** Profiles each path for the given duration. `shrink` divides the size of its rounds. */
export async function profilePaths(
  milliseconds: number,
  only: readonly string[] | undefined,
  shrink = 1,
): Promise<readonly PathProfile[]> {
  nameStatements();
  const cases = new Map(createCases(noPeers).map((each) => [each.id, each]));
  const profiles: PathProfile[] = [];
  for (const [name, { id, size }] of Object.entries(paths)) {
    if (only !== undefined && !only.includes(name)) continue;
    const path = cases.get(id);
    if (path === undefined) throw new Error(`profile: expected the id of a case, got ${id}. Fix the list of paths.`);
    const profile = await profileCase(path, Math.ceil(size / shrink), milliseconds);
    profiles.push({
      name,
      title: `${id}: ${path.title}`,
      times: sumTimeByPart(profile),
      hottest: listHottest(profile, maxHotFunctions),
    });
  }
  return profiles;
}

async function profileCase({ contenders }: Case, size: number, milliseconds: number): Promise<CpuProfile> {
  const ours = contenders.find(({ role }) => role === "ours");
  if (ours === undefined) throw new Error('profile: expected a contender with the role "ours", got none');
  const work = await ours.open();
  for (let round = 0; round < warmUps; round++) await work.run(size);
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: samplingUs });
    await session.post("Profiler.start");
    const end = performance.now() + milliseconds;
    do await work.run(size);
    while (performance.now() < end);
    return (await session.post("Profiler.stop")).profile;
  } finally {
    session.disconnect();
    await work.close?.();
  }
}

/** Formats a table of parts by path, and the functions with the most self time. */
export function toMarkdown(profiles: readonly PathProfile[]): string {
  const visibleParts = parts.filter((part) => profiles.some(({ times }) => formatPercent(times, part) !== ""));
  const rows = visibleParts.map((part) => [part, ...profiles.map(({ times }) => formatPercent(times, part))]);
  const names = profiles.map(({ name }) => name);
  const table = [["", ...names], ["---", ...names.map(() => "---:")], ...rows];
  const lines = profiles.map(
    ({ name, title, hottest: most }) =>
      `- ${name} (${title}): ${most.map(({ name: fn, share }) => `\`${fn}\` ${(share * 100).toFixed(1)} %`).join(", ")}.`,
  );
  return [
    `Profiled ${new Date().toISOString().slice(0, 10)} with \`npm run bench -- profile --write\` on ${describeMachine()}; Node ${process.versions.node}.`,
    "Share of self time by part, in percent, from samples every 0.1 ms of a warm process; idle time is excluded.",
    table.map((row) => `| ${row.join(" | ")} |`).join("\n"),
    "Functions of Statewright and of libraries with the most self time; native code of SQLite and V8 is only in the table.",
    lines.join("\n"),
  ].join("\n\n");
}

/** Empty for a share below half a percent. */
function formatPercent(times: ReadonlyMap<Part, number>, part: Part): string {
  const all = [...times.values()].reduce((sum, each) => sum + each, 0);
  const share = (100 * (times.get(part) ?? 0)) / all;
  return share >= 0.5 ? share.toFixed(0) : "";
}
