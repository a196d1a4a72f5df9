/** Bench report: measurements and their environment, as text for a terminal, as Markdown for the docs, and as JSON. */
import { arch, availableParallelism, cpus, platform, totalmem } from "node:os";
import type { CaseReport, Report } from "./case-report.ts";
import { findingThreshold, isFinding, listFindings } from "./findings.ts";
import { fitLoadGrowth } from "./load/load.ts";
import type { Measurement } from "./measure.ts";

/** Describes the machine without its host name. */
export function describeMachine(): string {
  const model = cpus()[0]?.model.trim() || "unknown processor";
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} cores of ${model}, ${memory} GiB, ${platform()} ${arch()}`;
}

const columns = [
  "",
  "CPU",
  "rounds from – to",
  "bytes",
  "wall",
  "CPU vs. ours",
  "wall vs. ours",
  "vs. limit",
  "growth",
] as const;

/** Formats the report as Markdown, with one table per case. */
export function toMarkdown(report: Report): string {
  const { date, command, versions, peers, cases } = report;
  const leaks = formatLeaks(report);
  const facts = [
    `Measured ${date} with \`${command}\` on ${report.machine}; ${versions}. ${peers.join(" ")}`,
    `Figures are per unit of work: the median of alternating rounds, each contender in its own process. CPU is the CPU time of the whole process, including garbage collector and compiler. \`CPU vs. ours\` and \`wall vs. ours\` are the row's time divided by the time of Statewright. \`vs. limit\` is the row's CPU time, wall time and bytes on disk divided by those of the limit, which is named above the table: the cost of the same effect on the bare platform. Growth is the exponent of CPU time and of bytes on disk by size, over 1x, 2x, 4x and 8x (1 is linear, 0 is constant); an exponent above ${findingThreshold} is marked as a finding.`,
  ];
  const tables = cases.map((each) => {
    const limit = findLimit(each);
    const limitText = limit === undefined ? "" : `; limit: ${limit.name}`;
    const head = `### ${each.id}: ${each.title}\n\nA unit is one ${each.unit}; budget ${each.budget.text}${limitText}.`;
    return [head, toTable(createRows(each)), ...listRemarks(each)].join("\n\n");
  });
  const findingTexts = listFindings(report);
  return [
    ...facts,
    ...tables,
    ...(leaks === "" ? [] : [`### Leaks\n\n${leaks}`]),
    ...formatLoadSection(report),
    ...(findingTexts.length === 0 ? [] : [`### Findings\n\n${findingTexts.map((line) => `- ${line}`).join("\n")}`]),
  ].join("\n\n");
}

/** Formats rows as a Markdown table, without the columns that are empty in all rows. */
function toTable(rows: readonly (readonly string[])[]): string {
  const used = columns.flatMap((_, index) => (index === 0 || rows.some((row) => row[index] !== "") ? [index] : []));
  const toLine = (row: readonly string[]): string => `| ${used.map((index) => row[index]).join(" | ")} |`;
  return [toLine(columns), `|${used.map(() => "---|").join("")}`, ...rows.map(toLine)].join("\n");
}

/** Formats the report for a terminal. */
export function toText(report: Report): string {
  const blocks = report.cases.map((each) => {
    const rows = [columns, ...createRows(each)];
    const widths = columns.map((_, index) => Math.max(...rows.map((row) => (row[index] ?? "").length)));
    const lines = rows.map((row) =>
      row
        .map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0)))
        .join("  "),
    );
    const head = `${each.id}: ${each.title} (one ${each.unit}; budget ${each.budget.text})`;
    return [head, ...lines.map((line) => line.trimEnd()), ...listRemarks(each)].join("\n");
  });
  const header = [report.machine, report.versions, ...report.peers].join("\n");
  const findingTexts = listFindings(report).map((line) => `finding: ${line}`);
  return [header, ...blocks, formatLeaks(report), ...formatLoad(report), ...findingTexts]
    .filter((block) => block !== "")
    .join("\n\n");
}

function createRows(report: CaseReport): readonly (readonly string[])[] {
  const { contenders } = report;
  const ours = contenders.find(({ role }) => role === "ours");
  return contenders.map((each) => [
    each.notes === undefined ? each.name : `${each.name}: ${each.notes}`,
    formatTime(each.cpuUs.median),
    `${formatTime(each.cpuUs.min)} – ${formatTime(each.cpuUs.max)}`,
    each.bytes === undefined ? "" : formatBytes(each.bytes),
    formatTime(each.wallUs.median),
    each.role === "ours" || ours === undefined ? "1" : formatRatio(each.cpuUs.median / ours.cpuUs.median),
    each.role === "ours" || ours === undefined ? "1" : formatRatio(each.wallUs.median / ours.wallUs.median),
    formatDistance(each, findLimit(report)),
    formatGrowth(each, report),
  ]);
}

function listRemarks({ contenders }: CaseReport): readonly string[] {
  return contenders.flatMap(({ remark }) => (remark === undefined ? [] : [remark]));
}

/** Returns the contender that distances are measured to. */
function findLimit({ contenders }: CaseReport): Measurement | undefined {
  return contenders.find(({ role }) => role === "limit");
}

/** Formats the cost of a contender as a multiple of the limit's cost. */
function formatDistance({ cpuUs, wallUs, bytes, role }: Measurement, limit: Measurement | undefined): string {
  if (limit === undefined || role === "limit") return "";
  const parts = [
    `CPU ${formatRatio(cpuUs.median / limit.cpuUs.median)}`,
    `wall ${formatRatio(wallUs.median / limit.wallUs.median)}`,
  ];
  if (bytes !== undefined && limit.bytes !== undefined) parts.push(`bytes ${formatRatio(bytes / limit.bytes)}`);
  return parts.join(", ");
}

function formatGrowth({ growth }: Measurement, { maxGrowth: caseMaxGrowth }: CaseReport): string {
  if (growth === undefined) return "";
  const formatExponent = (exponent: number): string =>
    `${exponent.toFixed(2)}${isFinding(exponent, caseMaxGrowth) ? " **finding**" : ""}`;
  const bytes = growth.bytesExponent === undefined ? "" : `, bytes ${formatExponent(growth.bytesExponent)}`;
  return `${formatExponent(growth.exponent)}${bytes} (${growth.points[0]?.size} to ${growth.points.at(-1)?.size})`;
}

function formatLeaks({ leaks, retainedHeap: retained }: Report): string {
  const sentences = [];
  if (leaks !== undefined)
    sentences.push(
      `After ${leaks.runs} runs: ${leaks.heapBytesPerRun.toFixed(1)} bytes of heap per run. After ${leaks.agents.runs} agent runs saved to SQLite (a fifth each completed, with a nested agent, cancelled, failed, and with an abandoned stream): ${leaks.agents.heapBytesPerRun.toFixed(1)}. Leaked: ${leaks.handles} handles and timers, ${leaks.listeners} listeners on the shared signal.`,
    );
  if (retained !== undefined)
    sentences.push(
      `Within one warm run of ${retained.units} units: ${retained.bytesPerStep.toFixed(1)} bytes of heap per superstep, ${retained.bytesPerSavedStep.toFixed(1)} per superstep saved to SQLite, ${retained.bytesPerSend.toFixed(1)} per finished send.`,
    );
  return sentences.join(" ");
}

/** Formats one sentence per count, and the growth. */
function formatLoad({ load }: Report): readonly string[] {
  if (load === undefined) return [];
  const active = load.active.map(
    ({ threads, supersteps, seconds, cpuSeconds, loopDelayMs, rawCommitMs, rssBeforeMb, maxRssMb, maxHeapMb }) =>
      `${threads} active threads, FULL: ${supersteps} supersteps in ${seconds.toFixed(1)} s (${cpuSeconds.toFixed(1)} s CPU), event loop delay ${loopDelayMs.p99.toFixed(0)} ms (99 %), at most ${loopDelayMs.max.toFixed(0)} ms, with ${rawCommitMs.median.toFixed(1)} to ${rawCommitMs.max.toFixed(0)} ms for one raw transaction; at most ${maxRssMb.toFixed(0)} MB of memory (${rssBeforeMb.toFixed(0)} MB before the load), including ${maxHeapMb.toFixed(0)} MB of heap of the runs. Per thread: ${((cpuSeconds / threads) * 1_000).toFixed(2)} ms CPU, ${(((maxRssMb - rssBeforeMb) / threads) * 1_024).toFixed(0)} KB of memory, ${((maxHeapMb / threads) * 1_024).toFixed(0)} KB of heap.`,
  );
  const waiting = load.waiting.map(
    ({ runs, heapBytes, resumeMs }) =>
      `${runs} waiting runs: ${(heapBytes / 1_000).toFixed(0)} KB of heap in total; ${resumeMs.toFixed(2)} ms CPU to open a run, answer its interrupt and finish the run.`,
  );
  const { cpuByThreads, heapByThreads, resumeByWaitingRuns, bytesPerWaitingRun } = fitLoadGrowth(load);
  const growthTexts = [
    ...(cpuByThreads === undefined || heapByThreads === undefined
      ? []
      : [
          `Growth by active threads: CPU ${cpuByThreads.toFixed(2)}, heap ${heapByThreads.toFixed(2)} (exponents; 1 is linear).`,
        ]),
    ...(resumeByWaitingRuns === undefined || bytesPerWaitingRun === undefined
      ? []
      : [
          `Growth by waiting runs: CPU to open and finish one run ${resumeByWaitingRuns.toFixed(2)} (exponent; 0 is constant); ${bytesPerWaitingRun.toFixed(0)} bytes of heap per additional run.`,
        ]),
  ];
  return [...active, ...waiting, ...growthTexts];
}

function formatLoadSection(report: Report): readonly string[] {
  const lines = formatLoad(report).map((line) => `- ${line}`);
  return lines.length === 0 ? [] : [`### Load\n\n${lines.join("\n")}`];
}

function formatTime(us: number): string {
  if (us >= 1_000_000) return `${(us / 1_000_000).toFixed(2)} s`;
  if (us >= 1_000) return `${(us / 1_000).toFixed(us >= 10_000 ? 0 : 1)} ms`;
  return `${us.toFixed(us >= 100 ? 0 : us >= 1 ? 1 : 2)} µs`;
}

function formatBytes(bytes: number): string {
  if (bytes >= 10_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return bytes >= 10_000 ? `${(bytes / 1_000).toFixed(0)} KB` : `${Math.round(bytes)}`;
}

function formatRatio(value: number): string {
  return value >= 10 ? value.toFixed(0) : value.toFixed(2);
}
