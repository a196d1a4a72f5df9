/** A report: what was measured, on what, and its three faces: text for a terminal, Markdown for the docs, JSON. */
import { arch, availableParallelism, cpus, platform, totalmem } from "node:os";
import type { Case } from "./case.ts";
import type { Held } from "./held.ts";
import type { Leaks } from "./leaks.ts";
import type { Load } from "./load/load.ts";
import type { Measured } from "./measure.ts";

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

const columns = ["", "CPU", "rounds from – to", "wall", "bytes", "CPU of ours", "wall of ours", "growth"] as const;

/** One table a case. */
export function toMarkdown(report: Report): string {
  const { date, command, versions, peers, cases } = report;
  const leaks = leaksText(report);
  const facts = [
    `Measured ${date} with \`${command}\` on ${report.machine}; ${versions}. ${peers.join(" ")}`,
    "Figures are for one unit of work: the median of alternating rounds in one process. CPU is that of the whole process, the collector and the compiler included. `CPU of ours` and `wall of ours` say how many times ours the row needs; growth is the exponent of CPU, and of the bytes on disk where they are counted, by size over 1x, 2x, 4x and 8x (1 is linear, 0 does not grow).",
  ];
  const tables = cases.map((each) => {
    const head = `### ${each.id}: ${each.title}\n\nA unit is one ${each.unit}; budget ${each.budget.text}.`;
    const rows = rowsOf(each).map((row) => `| ${row.join(" | ")} |`);
    return `${head}\n\n| ${columns.join(" | ")} |\n|${columns.map(() => "---|").join("")}\n${rows.join("\n")}`;
  });
  return [...facts, ...tables, ...(leaks === "" ? [] : [`### Leaks\n\n${leaks}`]), ...loadMarkdown(report)].join(
    "\n\n",
  );
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
    return [`${each.id}: ${each.title} (a ${each.unit}; budget ${each.budget.text})`, ...lines].join("\n");
  });
  const said = [report.machine, report.versions, ...report.peers].join("\n");
  return [said, ...blocks, leaksText(report), ...loadLines(report)].join("\n\n").trimEnd();
}

function rowsOf({ contenders }: CaseReport): readonly (readonly string[])[] {
  const ours = contenders.find(({ role }) => role === "ours");
  return contenders.map(({ name, role, cpuUs, wallUs, bytes, growth, notes }) => [
    notes === undefined ? name : `${name}: ${notes}`,
    time(cpuUs.median),
    `${time(cpuUs.least)} – ${time(cpuUs.most)}`,
    time(wallUs.median),
    bytes === undefined ? "" : volume(bytes),
    role === "ours" || ours === undefined ? "1" : ratio(cpuUs.median / ours.cpuUs.median),
    role === "ours" || ours === undefined ? "1" : ratio(wallUs.median / ours.wallUs.median),
    growth === undefined
      ? ""
      : `${growth.exponent.toFixed(2)}${growth.bytesExponent === undefined ? "" : `, bytes ${growth.bytesExponent.toFixed(2)}`} (${growth.points[0]?.size} to ${growth.points.at(-1)?.size})`,
  ]);
}

function leaksText({ leaks, held }: Report): string {
  const sentences = [];
  if (leaks !== undefined)
    sentences.push(
      `After ${leaks.runs} runs: ${leaks.heapBytesPerRun.toFixed(1)} bytes of heap a run, ${leaks.handles} handles and timers, ${leaks.listeners} listeners on the signal that they shared.`,
    );
  if (held !== undefined)
    sentences.push(
      `Within one run of ${held.units}, once it is warm: ${held.bytesPerStep.toFixed(1)} bytes of heap a superstep, ${held.bytesPerSavedStep.toFixed(1)} a superstep saved to SQLite, ${held.bytesPerSend.toFixed(1)} a finished send.`,
    );
  return sentences.join(" ");
}

/** One sentence for each count. */
function loadLines({ load }: Report): readonly string[] {
  if (load === undefined) return [];
  const active = load.active.map(
    ({ threads, supersteps, seconds, cpuSeconds, loopDelayMs, rawCommitMs, rssBeforeMb, mostRssMb, mostHeapMb }) =>
      `${threads} threads at work at the same time, FULL: ${supersteps} supersteps in ${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s CPU), the event loop late by ${loopDelayMs.p99.toFixed(0)} ms (99 %), ${loopDelayMs.most.toFixed(0)} ms at most, where one raw transaction takes ${rawCommitMs.median.toFixed(1)} to ${rawCommitMs.most.toFixed(0)} ms; at most ${mostRssMb.toFixed(0)} MB of memory (${rssBeforeMb.toFixed(0)} before), ${mostHeapMb.toFixed(0)} MB of it heap of the runs.`,
  );
  const parked = load.parked.map(
    ({ runs, heapBytes, resumeMs }) =>
      `${runs} runs that wait for a person: ${(heapBytes / 1_000).toFixed(0)} KB of heap in all; ${resumeMs.toFixed(2)} ms CPU to open one, answer it and run it to its end.`,
  );
  return [...active, ...parked];
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
