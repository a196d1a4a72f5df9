/** Describes the contents of a commit, for the name of a crash point. */
import type { Commit } from "@statewright/core/store";

/**
 * Names the rows that become durable: `step 2 (pay)`, `the start of step charge`, `the answer to approve`, `the end
 * of the run`.
 */
export function describeCommit({ branch, checkpoint, effects = [], interrupts = [], run }: Commit): string {
  const parts = [
    ...(checkpoint === undefined
      ? []
      : [
          checkpoint.row.nodes.length === 0
            ? "the input"
            : `step ${checkpoint.row.step} (${checkpoint.row.nodes.join(", ")})`,
        ]),
    ...(checkpoint === undefined ? effects : []).flatMap(({ kind, name, state }) =>
      kind === "step" || kind === "tool" || kind === "model"
        ? [`the ${state === "started" ? "start" : "outcome"} of ${kind} ${name}`]
        : [],
    ),
    ...interrupts.map(({ key, answer }) => (answer === undefined ? `the interrupt ${key}` : `the answer to ${key}`)),
    ...(run?.status === "done" ? ["the end of the run"] : []),
  ];
  const suffix = branch.includes("/") ? " in an inner graph" : "";
  return `${[...new Set(parts)].join(", ") || "the run's row"}${suffix}`;
}
