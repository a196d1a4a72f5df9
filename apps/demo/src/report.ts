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
    `- parts checked: ${parts.length}`,
    "",
    "## Findings",
    "",
    ...(findings.length === 0
      ? ["None."]
      : ["| severity | part | finding |", "|---|---|---|", ...sortBySeverity(findings).map(renderRow)]),
    "",
    ...(decision?.note === undefined ? [] : [`Note of the approver: ${escapeMarkdown(decision.note)}`, ""]),
    `Written by the Statewright demo on the branch "${escapeMarkdown(branch)}".`,
    "",
  ].join("\n");
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

function renderRow({ severity, part, text }: Finding): string {
  return `| ${escapeMarkdown(severity)} | ${escapeMarkdown(part)} | ${escapeMarkdown(text)} |`;
}
