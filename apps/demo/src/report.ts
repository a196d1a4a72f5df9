/** Markdown report of an audit, and its atomic write. */
import { basename, dirname } from "node:path";
import { workspace } from "@statewright/host";
import type { AuditState, Finding } from "./audit-state.ts";
import { escapeMarkdown } from "./format-text.ts";

/** Renders the report from the saved state only. */
export function renderReport(state: AuditState, branch: string): string {
  const { verdict, facts, findings, parts, decision } = state;
  return [
    "# Audit",
    "",
    `**${escapeMarkdown(verdict?.grade ?? "no verdict")}.** ${escapeMarkdown(verdict?.summary ?? "")}`,
    "",
    "## Measured",
    "",
    ...Object.entries(facts).map(([name, fact]) => `- ${escapeMarkdown(name)}: ${escapeMarkdown(fact)}`),
    ...(facts["parts"] === undefined ? [`- parts checked: ${parts.length}`] : []),
    "",
    "## Findings",
    "",
    ...(findings.length === 0
      ? ["None."]
      : ["| severity | path | finding |", "|---|---|---|", ...sortBySeverity(findings).map(renderRow)]),
    "",
    ...(decision?.note === undefined ? [] : [`Note of the approver: ${escapeMarkdown(decision.note)}`, ""]),
    `Written by the Statewright demo on the branch "${escapeMarkdown(branch)}".`,
    "",
  ].join("\n");
}

/** Report as data, the output of `--json`. */
export interface ReportData {
  /** Path of the README at the root of the tree; null without one. */
  readonly readme: string | null;
  readonly filesListed: number;
  /** Number of files whose text was read. */
  readonly filesRead: number;
  readonly findings: readonly Finding[];
}

/** Creates the report as data from the saved state, findings by severity. */
export function createReportData({ readme, counts, findings }: AuditState): ReportData {
  const { filesListed = 0, filesRead = 0 } = counts;
  return { readme, filesListed, filesRead, findings: sortBySeverity(findings) };
}

/** Writes the report atomically and returns its path. Idempotent: a repeated write leaves the same file. */
export async function writeReport(path: string, report: string): Promise<string> {
  await workspace(dirname(path)).write(basename(path), report);
  return path;
}

const severities: readonly Finding["severity"][] = ["high", "medium", "low"];

function sortBySeverity(findings: readonly Finding[]): readonly Finding[] {
  return severities.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

function renderRow({ severity, path, title }: Finding): string {
  return `| ${escapeMarkdown(severity)} | ${escapeMarkdown(path)} | ${escapeMarkdown(title)} |`;
}
