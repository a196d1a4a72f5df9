/** What a commit holds, in a few words, for the name of a point. */
import type { Commit } from "@statewright/core";

/** Name what becomes durable: `step 2 (pay)`, `the start of step charge`, `the answer to approve`, `the end of the run`. */
export function commitInWords({ branch, checkpoint, effects = [], interrupts = [], run }: Commit): string {
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
    ...interrupts.map(({ key, answer }) => (answer === undefined ? `the question ${key}` : `the answer to ${key}`)),
    ...(run?.status === "done" ? ["the end of the run"] : []),
  ];
  const inside = branch.includes("/") ? " in a graph inside" : "";
  return `${[...new Set(parts)].join(", ") || "the run's row"}${inside}`;
}
