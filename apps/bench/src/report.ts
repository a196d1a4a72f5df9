/** A report: what was measured, on what, and its three faces: text for a terminal, Markdown for the docs, JSON. */
import { arch, availableParallelism, cpus, platform, totalmem } from "node:os";
import type { Case } from "./case.ts";
import { findingAbove, findings, isFinding } from "./findings.ts";
import type { Leaks } from "./leaks.ts";
import { type Load, loadGrowth } from "./load/load.ts";
import type { Measured } from "./measure.ts";
import type { Held } from "./retained-heap.ts";

export interface Report {
  readonly date: string;
  readonly command: string;
  readonly machine: string;
  readonly versions: string;
  readonly peers: readonly string[];
  readonly cases: readonly CaseReport[];
  readonly leaks: Leaks | undefined;
  readonly held: Held | undefined;
  readonly load: Load | undefined;
}

export interface CaseReport {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly budget: Case["budget"];
  readonly checks: NonNullable<Case["checks"]>;
  readonly steepest?: number;
  readonly contenders: readonly Measured[];
}

/** The machine without its name. */
export function machine(): string {
  const model = cpus()[0]?.model.trim() || "an unnamed processor";
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} cores of ${model}, ${memory} GiB, ${platform()} ${arch()}`;
}

const columns = [
  "",
  "CPU",
  "rounds from – to",
  "bytes",
  "wall",
  "CPU of ours",
  "wall of ours",
  "of the limit",
  "growth",
] as const;

/** One table a case. */
export function toMarkdown(report: Report): string {
  const { date, command, versions, peers, cases } = report;
  const leaks = leaksText(report);
  const facts = [
    `Measured ${date} with \`${command}\` on ${report.machine}; ${versions}. ${peers.join(" ")}`,
    `Figures are for one unit of work: the median of alternating rounds, each contender in a process of its own. CPU is that of the whole process, the collector and the compiler included. \`CPU of ours\` and \`wall of ours\` say how many times ours the row needs. \`of the limit\` is the distance to what the platform itself needs for the same effect: how many times the CPU, the wall time and, where both leave some on disk, the bytes of the limit that the line above the table names. Growth is the exponent of CPU, and of the bytes on disk where they are counted, by size over 1x, 2x, 4x and 8x (1 is linear, 0 does not grow); one above ${findingAbove} is marked as a finding.`,
  ];
  const tables = cases.map((each) => {
    const limit = limitOf(each);
    const beside = limit === undefined ? "" : `; limit: ${limit.name}`;
    const head = `### ${each.id}: ${each.title}\n\nA unit is one ${each.unit}; budget ${each.budget.text}${beside}.`;
    const rows = rowsOf(each).map((row) => `| ${row.join(" | ")} |`);
    const table = `| ${columns.join(" | ")} |\n|${columns.map(() => "---|").join("")}\n${rows.join("\n")}`;
    return [head, table, ...remarksOf(each)].join("\n\n");
  });
  const found = findings(report);
  return [
    ...facts,
    ...tables,
    ...(leaks === "" ? [] : [`### Leaks\n\n${leaks}`]),
    ...loadMarkdown(report),
    ...(found.length === 0 ? [] : [`### Findings\n\n${found.map((line) => `- ${line}`).join("\n")}`]),
  ].join("\n\n");
}

/** The same for a terminal. */
export function toText(report: Report): string {
  const blocks = report.cases.map((each) => {
    const rows = [columns, ...rowsOf(each)];
    const widths = columns.map((_, index) => Math.max(...rows.map((row) => (row[index] ?? "").length)));
    const lines = rows.map((row) =>
      row
        .map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0)))
        .join("  "),
    );
    const head = `${each.id}: ${each.title} (one ${each.unit}; budget ${each.budget.text})`;
    return [head, ...lines.map((line) => line.trimEnd()), ...remarksOf(each)].join("\n");
  });
  const said = [report.machine, report.versions, ...report.peers].join("\n");
  const found = findings(report).map((line) => `finding: ${line}`);
  return [said, ...blocks, leaksText(report), ...loadLines(report), ...found]
    .filter((block) => block !== "")
    .join("\n\n");
}

function rowsOf(report: CaseReport): readonly (readonly string[])[] {
  const { contenders } = report;
  const ours = contenders.find(({ role }) => role === "ours");
  return contenders.map((each) => [
    each.notes === undefined ? each.name : `${each.name}: ${each.notes}`,
    time(each.cpuUs.median),
    `${time(each.cpuUs.least)} – ${time(each.cpuUs.most)}`,
    each.bytes === undefined ? "" : volume(each.bytes),
    time(each.wallUs.median),
    each.role === "ours" || ours === undefined ? "1" : ratio(each.cpuUs.median / ours.cpuUs.median),
    each.role === "ours" || ours === undefined ? "1" : ratio(each.wallUs.median / ours.wallUs.median),
    distance(each, limitOf(report)),
    growthCell(each, report),
  ]);
}

function remarksOf({ contenders }: CaseReport): readonly string[] {
  return contenders.flatMap(({ remark }) => (remark === undefined ? [] : [remark]));
}

/** What distances are measured to. */
function limitOf({ contenders }: CaseReport): Measured | undefined {
  return contenders.find(({ role }) => role === "limit");
}

/** How many times the limit something needs. */
function distance({ cpuUs, wallUs, bytes, role }: Measured, limit: Measured | undefined): string {
  if (limit === undefined || role === "limit") return "";
  const parts = [
    `CPU ${ratio(cpuUs.median / limit.cpuUs.median)}`,
    `wall ${ratio(wallUs.median / limit.wallUs.median)}`,
  ];
  if (bytes !== undefined && limit.bytes !== undefined) parts.push(`bytes ${ratio(bytes / limit.bytes)}`);
  return parts.join(", ");
}

function growthCell({ growth }: Measured, { steepest }: CaseReport): string {
  if (growth === undefined) return "";
  const marked = (exponent: number): string =>
    `${exponent.toFixed(2)}${isFinding(exponent, steepest) ? " **finding**" : ""}`;
  const bytes = growth.bytesExponent === undefined ? "" : `, bytes ${marked(growth.bytesExponent)}`;
  return `${marked(growth.exponent)}${bytes} (${growth.points[0]?.size} to ${growth.points.at(-1)?.size})`;
}

function leaksText({ leaks, held }: Report): string {
  const sentences = [];
  if (leaks !== undefined)
    sentences.push(
      `After ${leaks.runs} runs: ${leaks.heapBytesPerRun.toFixed(1)} bytes of heap a run; after ${leaks.agents.runs} of agents, saved to SQLite, a fifth each answered, with an agent inside, cancelled, failed and not read to the end: ${leaks.agents.heapBytesPerRun.toFixed(1)}. ${leaks.handles} handles and timers and ${leaks.listeners} listeners on the signal that they shared are left.`,
    );
  if (held !== undefined)
    sentences.push(
      `Within one run of ${held.units}, once it is warm: ${held.bytesPerStep.toFixed(1)} bytes of heap a superstep, ${held.bytesPerSavedStep.toFixed(1)} a superstep saved to SQLite, ${held.bytesPerSend.toFixed(1)} a finished send.`,
    );
  return sentences.join(" ");
}

/** One sentence for each count, and one for how they grow. */
function loadLines({ load }: Report): readonly string[] {
  if (load === undefined) return [];
  const active = load.active.map(
    ({ threads, supersteps, seconds, cpuSeconds, loopDelayMs, rawCommitMs, rssBeforeMb, mostRssMb, mostHeapMb }) =>
      `${threads} threads at work at the same time, FULL: ${supersteps} supersteps in ${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s CPU), the event loop late by ${loopDelayMs.p99.toFixed(0)} ms (99 %), ${loopDelayMs.most.toFixed(0)} ms at most, where one raw transaction takes ${rawCommitMs.median.toFixed(1)} to ${rawCommitMs.most.toFixed(0)} ms; at most ${mostRssMb.toFixed(0)} MB of memory (${rssBeforeMb.toFixed(0)} before), ${mostHeapMb.toFixed(0)} MB of it heap of the runs. A thread: ${((cpuSeconds / threads) * 1_000).toFixed(2)} ms CPU, ${(((mostRssMb - rssBeforeMb) / threads) * 1_024).toFixed(0)} KB of memory, ${((mostHeapMb / threads) * 1_024).toFixed(0)} KB of heap.`,
  );
  const parked = load.parked.map(
    ({ runs, heapBytes, resumeMs }) =>
      `${runs} runs that wait for a person: ${(heapBytes / 1_000).toFixed(0)} KB of heap in all; ${resumeMs.toFixed(2)} ms CPU to open one, answer it and run it to its end.`,
  );
  const { cpuByThreads, heapByThreads, resumeByParked, bytesOfParked } = loadGrowth(load);
  const grown = [
    ...(cpuByThreads === undefined || heapByThreads === undefined
      ? []
      : [
          `Growth by threads at work: CPU ${cpuByThreads.toFixed(2)}, heap ${heapByThreads.toFixed(2)} (exponents; 1 is as much for each).`,
        ]),
    ...(resumeByParked === undefined || bytesOfParked === undefined
      ? []
      : [
          `Growth by runs that wait: CPU to open and end one ${resumeByParked.toFixed(2)} (exponent; 0 does not grow); each further one holds ${bytesOfParked.toFixed(0)} bytes of heap.`,
        ]),
  ];
  return [...active, ...parked, ...grown];
}

function loadMarkdown(report: Report): readonly string[] {
  const lines = loadLines(report).map((line) => `- ${line}`);
  return lines.length === 0 ? [] : [`### Load\n\n${lines.join("\n")}`];
}

function time(us: number): string {
  if (us >= 1_000_000) return `${(us / 1_000_000).toFixed(2)} s`;
  if (us >= 1_000) return `${(us / 1_000).toFixed(us >= 10_000 ? 0 : 1)} ms`;
  return `${us.toFixed(us >= 100 ? 0 : us >= 1 ? 1 : 2)} µs`;
}

function volume(bytes: number): string {
  if (bytes >= 10_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return bytes >= 10_000 ? `${(bytes / 1_000).toFixed(0)} KB` : `${Math.round(bytes)}`;
}

function ratio(value: number): string {
  return value >= 10 ? value.toFixed(0) : value.toFixed(2);
}
