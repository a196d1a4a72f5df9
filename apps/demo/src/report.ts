/** The report of an audit as Markdown, and the one write that puts it in its place. */
import { basename, dirname } from "node:path";
import { workspace } from "@statewright/host";
import type { AuditState, Finding } from "./audit-state.ts";
import { inMarkdown } from "./format-text.ts";

/** The report. Everything in it comes from the saved state. */
export function reportOf(state: AuditState, branch: string): string {
  const { verdict, facts, findings, parts, decision } = state;
  return [
    "# Audit",
    "",
    `**${inMarkdown(verdict?.grade ?? "no verdict")}.** ${inMarkdown(verdict?.summary ?? "")}`,
    "",
    "## Measured",
    "",
    ...Object.entries(facts).map(([name, fact]) => `- ${inMarkdown(name)}: ${inMarkdown(fact)}`),
    `- parts checked: ${parts.length}`,
    "",
    "## Findings",
    "",
    ...(findings.length === 0
      ? ["None."]
      : ["| severity | part | finding |", "|---|---|---|", ...byGravity(findings).map(row)]),
    "",
    ...(decision?.note === undefined
      ? []
      : [`Note of the person who let it be written: ${inMarkdown(decision.note)}`, ""]),
    `Written by the Statewright demo on the branch "${inMarkdown(branch)}".`,
    "",
  ].join("\n");
}

/** Write the report, whole or not at all, and give its path. Doing it twice leaves the same file. */
export async function writeReport(path: string, report: string): Promise<string> {
  await workspace(dirname(path)).write(basename(path), report);
  return path;
}

const gravity: readonly Finding["severity"][] = ["high", "medium", "low"];

function byGravity(findings: readonly Finding[]): readonly Finding[] {
  return gravity.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
}

function row({ severity, part, text }: Finding): string {
  return `| ${inMarkdown(severity)} | ${inMarkdown(part)} | ${inMarkdown(text)} |`;
}
