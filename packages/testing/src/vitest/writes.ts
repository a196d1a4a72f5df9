/** The matcher for what a run wrote into its channels. */

import { firstDifference, textOfValue } from "../order/first-difference.ts";
import { account, times } from "../run/explain-run.ts";
import { toldOf } from "../run/trace-context.ts";
import { writeText } from "../trace/format-write.ts";
import { type ChannelWrite, type Trace, writesOf } from "../trace/trace.ts";
import { asTrace, type Bound, type Verdict } from "./received.ts";

/** Some superstep wrote this channel, so that it had this value when one is given. */
export function toHaveWritten(this: Bound, received: unknown, channel: string, ...value: readonly unknown[]): Verdict {
  const trace = asTrace(received, "toHaveWritten");
  const writes = writesOf(trace, channel, toldOf(trace)?.initial[channel]);
  const [wanted] = value;
  const pass = value.length === 0 ? writes.length > 0 : writes.some((write) => this.equals(write.value, wanted));
  return {
    pass,
    message: () => {
      const lines = [...writes.map(writeText), account(trace)].join("\n");
      if (pass)
        return `"${channel}" was written ${times(writes.length)}${value.length === 0 ? "" : `, and was ${textOfValue(wanted)}`}, and should not.\n${lines}`;
      if (writes.length === 0) return `nothing wrote "${channel}"${conflict(trace)}.\n${lines}`;
      const last = writes.at(-1)?.value;
      const found = firstDifference(wanted, last, channel, this.equals);
      const where =
        found === undefined || found.place === channel
          ? `"${channel}" is ${textOfValue(last)}, and never was ${textOfValue(wanted)}`
          : `"${channel}" never was ${textOfValue(wanted)}: ${found.place} is ${textOfValue(found.other)}, not ${textOfValue(found.one)}`;
      return `${where}.\n${lines}${lost(channel, writes, this.equals)}`;
    },
    actual: writes.at(-1)?.value,
    expected: wanted,
  };
}

/** What several tasks gave in one superstep, and the channel shows of one only. */
function lost(channel: string, writes: readonly ChannelWrite[], equals: Bound["equals"]): string {
  const single = writes.find(({ given, value }) => given.length > 1 && given.some((each) => equals(each.value, value)));
  if (single === undefined) return "";
  return `\n"${channel}" is what one of the ${single.given.length} writes of step ${single.step} gave, so the others are lost: give it a reducer that folds all of them.`;
}

/** A superstep that was refused wrote nothing. */
function conflict(trace: Trace): string {
  const failed = trace.entries.findLast((entry) => entry.type === "run.failed");
  return failed === undefined ? "" : `, since the run failed: ${failed.error.code ?? failed.error.name}`;
}
