/** The command that profiles the hot paths: which part of the work takes which share of the time. */
import { Session } from "node:inspector/promises";
import { parseArgs } from "node:util";
import type { Case } from "../case.ts";
import { allCases } from "../cases/all.ts";
import { noPeers } from "../peers/langgraph.ts";
import { machine } from "../report.ts";
import { writeBetweenMarks } from "../written-page.ts";
import { nameStatements } from "./named-statements.ts";
import { type CpuProfile, type Hot, hottest, type Part, parts, timeByPart } from "./parts.ts";

const help = `npm run bench -- profile [options]
  --only superstep,load   these paths only
  --seconds 2             how long each path is profiled
  --write                 write docs/performance.md`;

/** The case whose work is profiled, and how many units a round has. */
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
const mostShown = 5;

/** What was found of one path. */
export interface PathProfile {
  readonly name: string;
  readonly title: string;
  readonly times: ReadonlyMap<Part, number>;
  readonly hottest: readonly Hot[];
}

/** Profile; gives the exit code. */
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
    if (unknown !== undefined) process.stderr.write(`there is no path ${unknown}: ${Object.keys(paths).join(", ")}\n`);
    process.stderr.write(`${help}\n`);
    return values.help ? 0 : 2;
  }
  const found = await profilePaths(Number(values.seconds) * 1_000, only);
  const text = toMarkdown(found);
  process.stdout.write(`${text}\n`);
  if (values.write) writeBetweenMarks(page, "npm run bench -- profile --write", text);
  return 0;
}

/** Profile each path for so long; `shrink` makes its rounds smaller. */
export async function profilePaths(
  milliseconds: number,
  only: readonly string[] | undefined,
  shrink = 1,
): Promise<readonly PathProfile[]> {
  nameStatements();
  const cases = new Map(allCases(noPeers).map((each) => [each.id, each]));
  const found: PathProfile[] = [];
  for (const [name, { id, size }] of Object.entries(paths)) {
    if (only !== undefined && !only.includes(name)) continue;
    const path = cases.get(id);
    if (path === undefined) throw new Error(`there is no case ${id}`);
    const profile = await profileCase(path, Math.ceil(size / shrink), milliseconds);
    found.push({
      name,
      title: `${id}: ${path.title}`,
      times: timeByPart(profile),
      hottest: hottest(profile, mostShown),
    });
  }
  return found;
}

async function profileCase({ contenders }: Case, size: number, milliseconds: number): Promise<CpuProfile> {
  const ours = contenders.find(({ role }) => role === "ours");
  if (ours === undefined) throw new Error("the case has no work of ours");
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

/** A table of parts by path, and the functions that took the most. */
export function toMarkdown(found: readonly PathProfile[]): string {
  const shown = parts.filter((part) => found.some(({ times }) => percent(times, part) !== ""));
  const rows = shown.map((part) => [part, ...found.map(({ times }) => percent(times, part))]);
  const names = found.map(({ name }) => name);
  const table = [["", ...names], ["---", ...names.map(() => "---:")], ...rows];
  const lines = found.map(
    ({ name, title, hottest: most }) =>
      `- ${name} (${title}): ${most.map(({ name: fn, share }) => `\`${fn}\` ${(share * 100).toFixed(1)} %`).join(", ")}.`,
  );
  return [
    `Profiled ${new Date().toISOString().slice(0, 10)} with \`npm run bench -- profile --write\` on ${machine()}; Node ${process.versions.node}.`,
    "The share of the time that each part takes itself, in percent, by samples every 0.1 ms of a warm process; waiting is left out.",
    table.map((row) => `| ${row.join(" | ")} |`).join("\n"),
    "The functions of ours and of libraries that take the most themselves; what SQLite and V8 do natively is in the table alone.",
    lines.join("\n"),
  ].join("\n\n");
}

/** Nothing for what is below half a percent. */
function percent(times: ReadonlyMap<Part, number>, part: Part): string {
  const all = [...times.values()].reduce((sum, each) => sum + each, 0);
  const share = (100 * (times.get(part) ?? 0)) / all;
  return share >= 0.5 ? share.toFixed(0) : "";
}
