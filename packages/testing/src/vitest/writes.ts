/** Matcher for channel writes of a run. */

import { findFirstDifference, formatValue } from "../order/first-difference.ts";
import { explainRun, formatTimes } from "../run/explain-run.ts";
import { getTraceContext } from "../run/trace-context.ts";
import { formatWrite } from "../trace/format-write.ts";
import { type ChannelWrite, listChannelWrites, type Trace } from "../trace/trace.ts";
import { type MatcherContext, type MatcherResult, requireTrace } from "./received.ts";

/** Passes when a superstep wrote this channel, with this resulting value when given. */
export function toHaveWritten(
  this: MatcherContext,
  received: unknown,
  channel: string,
  ...value: readonly unknown[]
): MatcherResult {
  const trace = requireTrace(received, "toHaveWritten");
  const writes = listChannelWrites(trace, channel, getTraceContext(trace)?.initial[channel]);
  const [expectedValue] = value;
  const pass = value.length === 0 ? writes.length > 0 : writes.some((write) => this.equals(write.value, expectedValue));
  return {
    pass,
    message: () => {
      const lines = [...writes.map(formatWrite), explainRun(trace)].join("\n");
      if (pass)
        return `"${channel}" was written ${formatTimes(writes.length)}${value.length === 0 ? "" : `, and was ${formatValue(expectedValue)}`}, and should not.\n${lines}`;
      if (writes.length === 0) return `no superstep wrote "${channel}"${describeRunFailure(trace)}.\n${lines}`;
      const lastValue = writes.at(-1)?.value;
      const difference = findFirstDifference(expectedValue, lastValue, channel, this.equals);
      const detail =
        difference === undefined || difference.path === channel
          ? `"${channel}" is ${formatValue(lastValue)}, and never was ${formatValue(expectedValue)}`
          : `"${channel}" never was ${formatValue(expectedValue)}: ${difference.path} is ${formatValue(difference.second)}, not ${formatValue(difference.first)}`;
      return `${detail}.\n${lines}${explainLostWrites(channel, writes, this.equals)}`;
    },
    actual: writes.at(-1)?.value,
    expected: expectedValue,
  };
}

/**
 * Explains lost writes: several tasks of a superstep wrote the channel, and the channel has the value of a single task
 * only.
 */
function explainLostWrites(channel: string, writes: readonly ChannelWrite[], equals: MatcherContext["equals"]): string {
  const single = writes.find(
    ({ nodeValues, value }) => nodeValues.length > 1 && nodeValues.some((each) => equals(each.value, value)),
  );
  if (single === undefined) return "";
  return `\n"${channel}" has the value of one of the ${single.nodeValues.length} writes of step ${single.step}, so the other writes are lost. Use a reducer that combines the writes.`;
}

/** Describes the failure of the run: a rejected superstep writes nothing. */
function describeRunFailure(trace: Trace): string {
  const failed = trace.entries.findLast((entry) => entry.type === "run.failed");
  return failed === undefined ? "" : `, because the run failed: ${failed.error.code ?? failed.error.name}`;
}
