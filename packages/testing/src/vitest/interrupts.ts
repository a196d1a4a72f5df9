/** Matchers for what a run asks people. */

import { firstDifference, textOfValue } from "../order/first-difference.ts";
import { account, didTimes, listed } from "../run/explain-run.ts";
import { questions, type Trace } from "../trace/trace.ts";
import { asTrace, type Bound, type Verdict } from "./received.ts";

/** This question was asked, with this payload when one is given. */
export function toHaveInterrupted(
  this: Bound,
  received: unknown,
  key: string,
  ...payload: readonly unknown[]
): Verdict {
  const trace = asTrace(received, "toHaveInterrupted");
  const asked = questions(trace);
  const ofKey = asked.filter((question) => question.key === key);
  const [wanted] = payload;
  const fitting = ofKey.filter((question) => payload.length === 0 || this.equals(question.payload, wanted));
  return {
    pass: fitting.length > 0,
    message: () => {
      if (fitting.length > 0)
        return `the run ${didTimes("asked", key, fitting.length)}, and should not.\n${askedText(asked)}\n${account(trace)}`;
      if (ofKey.length === 0)
        return `the run never asked "${key}"; it asked ${listed([...new Set(asked.map((question) => question.key))])}.\n${account(trace, "interrupted")}`;
      const shown = ofKey.at(-1)?.payload;
      const found = firstDifference(wanted, shown, "payload", this.equals);
      const where =
        found === undefined || found.place === "payload"
          ? `its payload is ${textOfValue(shown)}, not ${textOfValue(wanted)}`
          : `${found.place} is ${textOfValue(found.other)}, not ${textOfValue(found.one)}`;
      return `the run asked "${key}" with another payload: ${where}.\n${account(trace)}`;
    },
    actual: ofKey.map((question) => question.payload),
    expected: wanted,
  };
}

/** This question was asked once, in all lives of the run together. */
export function toHaveInterruptedOnce(this: Bound, received: unknown, key: string): Verdict {
  const trace = asTrace(received, "toHaveInterruptedOnce");
  const asked = questions(trace).filter((question) => question.key === key);
  return {
    pass: asked.length === 1,
    message: () =>
      [
        `the run ${didTimes("asked", key, asked.length)}${this.isNot ? ", and should not have asked just once" : ", and should ask once"}.`,
        ...(asked.length === 0 ? [] : [askedText(asked)]),
        ...(asked.length < 2 || this.isNot ? [] : [askedAgain(trace, asked)]),
        account(trace, asked.length === 0 ? "interrupted" : undefined),
      ].join("\n"),
    actual: asked.length,
    expected: 1,
  };
}

type Asked = ReturnType<typeof questions>[number];

function askedText(asked: readonly Asked[]): string {
  return asked
    .map(
      ({ key, node, payload }, index) =>
        `  ${index + 1}. "${key}" by "${node}"${payload === undefined || payload === null ? "" : `, about ${textOfValue(payload)}`}`,
    )
    .join("\n");
}

/** Why a question came again: the same task asked anew, or the path came to the node again. */
function askedAgain(trace: Trace, asked: readonly Asked[]): string {
  const tasks = asked.map(({ id }) => taskOf(trace, id));
  const [first, second] = tasks;
  if (first !== undefined && first === second)
    return "One task asked both: when it started over with the first answer, it asked a question that the answer does not fit. A body must ask the same after each start.";
  return "Different tasks asked: the path came to the node again, with the first answer already given.";
}

/** The task that asked a question: the one that was interrupted last before the run waited for it. */
function taskOf(trace: Trace, id: string): string | undefined {
  let task: string | undefined;
  for (const entry of trace.entries) {
    if (entry.type === "task.interrupted") task = entry.task;
    if (entry.type === "run.waiting" && entry.interrupts.some((question) => question.id === id)) return task;
  }
  return undefined;
}
