/** Answers that a host gives to interrupts in a tool call, without a form for a person. */
import type { OpenInterrupt } from "@statewright/core";
import { requiresPerson } from "./interrupt-forms.ts";
import type { OfferedGraph } from "./offer-graph.ts";

/** Returns true for an interrupt that the host's model may answer. */
export function canHostAnswer({ hostAnswers }: OfferedGraph, interrupt: OpenInterrupt): boolean {
  return hostAnswers === "all" || (hostAnswers === "except-approvals" && !requiresPerson(interrupt));
}

/**
 * Resolves answers of a host to open interrupts that the host may answer. Returns the reason as a string for invalid
 * answers.
 */
export function resolveAnswers(
  offered: OfferedGraph,
  interrupts: readonly OpenInterrupt[],
  entries: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> | string {
  const answers: Record<string, unknown> = {};
  for (const [name, answer] of Object.entries(entries)) {
    const [interrupt, another] = interrupts.filter(({ id, key }) => id === name || key === name);
    if (interrupt === undefined) return `No open interrupt ${JSON.stringify(name)}.`;
    if (another !== undefined) return `Several open interrupts have the key "${name}". Answer them by id.`;
    if (!canHostAnswer(offered, interrupt)) return `Only a person may answer "${interrupt.key}", not this call.`;
    answers[interrupt.id] = answer;
  }
  return answers;
}
