/** Matchers for interrupts. */

import { findFirstDifference, formatValue } from "../order/first-difference.ts";
import { explainRun, formatNames, formatVerbCount } from "../run/explain-run.ts";
import { listTracedInterrupts, type Trace } from "../trace/trace.ts";
import { type MatcherContext, type MatcherResult, requireTrace } from "./received.ts";

/** Passes when this interrupt was raised, with this payload when given. */
export function toHaveInterrupted(
  this: MatcherContext,
  received: unknown,
  key: string,
  ...payload: readonly unknown[]
): MatcherResult {
  const trace = requireTrace(received, "toHaveInterrupted");
  const interrupts = listTracedInterrupts(trace);
  const withKey = interrupts.filter((interrupt) => interrupt.key === key);
  const [expectedPayload] = payload;
  const matching = withKey.filter(
    (interrupt) => payload.length === 0 || this.equals(interrupt.payload, expectedPayload),
  );
  return {
    pass: matching.length > 0,
    message: () => {
      if (matching.length > 0)
        return `the run ${formatVerbCount("raised the interrupt", key, matching.length)}, and should not.\n${formatInterrupts(interrupts)}\n${explainRun(trace)}`;
      if (withKey.length === 0)
        return `the run never raised the interrupt "${key}"; it raised ${formatNames([...new Set(interrupts.map((interrupt) => interrupt.key))])}.\n${explainRun(trace, "interrupted")}`;
      const lastPayload = withKey.at(-1)?.payload;
      const difference = findFirstDifference(expectedPayload, lastPayload, "payload", this.equals);
      const detail =
        difference === undefined || difference.path === "payload"
          ? `its payload is ${formatValue(lastPayload)}, not ${formatValue(expectedPayload)}`
          : `${difference.path} is ${formatValue(difference.second)}, not ${formatValue(difference.first)}`;
      return `the run raised the interrupt "${key}" with another payload: ${detail}.\n${explainRun(trace)}`;
    },
    actual: withKey.map((interrupt) => interrupt.payload),
    expected: expectedPayload,
  };
}

/** Passes when this interrupt was raised once, in all processes of the run together. */
export function toHaveInterruptedOnce(this: MatcherContext, received: unknown, key: string): MatcherResult {
  const trace = requireTrace(received, "toHaveInterruptedOnce");
  const interrupts = listTracedInterrupts(trace).filter((interrupt) => interrupt.key === key);
  return {
    pass: interrupts.length === 1,
    message: () =>
      [
        `the run ${formatVerbCount("raised the interrupt", key, interrupts.length)}${this.isNot ? ", and should not have raised it exactly once" : ", and should raise it once"}.`,
        ...(interrupts.length === 0 ? [] : [formatInterrupts(interrupts)]),
        ...(interrupts.length < 2 || this.isNot ? [] : [explainRepeatedInterrupt(trace, interrupts)]),
        explainRun(trace, interrupts.length === 0 ? "interrupted" : undefined),
      ].join("\n"),
    actual: interrupts.length,
    expected: 1,
  };
}

type TracedInterrupt = ReturnType<typeof listTracedInterrupts>[number];

function formatInterrupts(interrupts: readonly TracedInterrupt[]): string {
  return interrupts
    .map(
      ({ key, node, payload }, index) =>
        `  ${index + 1}. "${key}" by "${node}"${payload === undefined || payload === null ? "" : `, about ${formatValue(payload)}`}`,
    )
    .join("\n");
}

/** Explains a repeated interrupt: the same task raised a new interrupt, or the path reached the node again. */
function explainRepeatedInterrupt(trace: Trace, interrupts: readonly TracedInterrupt[]): string {
  const tasks = interrupts.map(({ id }) => findInterruptedTask(trace, id));
  const [first, second] = tasks;
  if (first !== undefined && first === second)
    return "One task raised both interrupts: after its restart with the first answer, it raised an interrupt that does not match the answer. A body must raise the same interrupts after each start.";
  return "Different tasks raised the interrupts: the path reached the node again after the first answer.";
}

/** Finds the task of an interrupt: the last interrupted task before the run waited for the interrupt. */
function findInterruptedTask(trace: Trace, id: string): string | undefined {
  let task: string | undefined;
  for (const entry of trace.entries) {
    if (entry.type === "task.interrupted") task = entry.task;
    if (entry.type === "run.waiting" && entry.interrupts.some((interrupt) => interrupt.id === id)) return task;
  }
  return undefined;
}
