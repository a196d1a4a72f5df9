/** Matchers for where a run stands: its states, their tags, and what they accept. */

import { isIn, standingIn } from "../node/state-names.ts";
import { account, listed } from "../run/explain-run.ts";
import { asRun, type Bound, type Verdict } from "./received.ts";

/** The run stands in this state. */
export function toBeInState(this: Bound, received: unknown, state: string): Verdict {
  const t = asRun(received, "toBeInState");
  const standing = standingIn(t.value);
  return {
    pass: isIn(t.value, state),
    message: () =>
      this.isNot
        ? `the run is in "${state}", and should not be.\n${account(t.trace)}`
        : `the run is not in "${state}" but in ${listed(standing)}.\n${account(t.trace, state)}`,
    actual: standing,
    expected: state,
  };
}

/** Some state that the run stands in has this tag. */
export function toHaveTag(this: Bound, received: unknown, tag: string): Verdict {
  const t = asRun(received, "toHaveTag");
  return {
    pass: t.tags.includes(tag),
    message: () =>
      this.isNot
        ? `the run is in ${listed(standingIn(t.value))}, which has the tag "${tag}".\n${account(t.trace)}`
        : `the run is in ${listed(standingIn(t.value))}, which has ${t.tags.length === 0 ? "no tags" : `the ${t.tags.length === 1 ? "tag" : "tags"} ${listed(t.tags)}`}, not "${tag}".\n${account(t.trace)}`,
    actual: t.tags,
    expected: tag,
  };
}

/** The run takes an answer to this question now, or its machine this event. */
export function toAccept(this: Bound, received: unknown, name: string): Verdict {
  const t = asRun(received, "toAccept");
  const questions = t.interrupts.flatMap(({ id, key }) => [id, key]);
  return {
    pass: questions.includes(name) || t.events.includes(name),
    message: () =>
      this.isNot
        ? `the run accepts "${name}", and should not.\n${account(t.trace)}`
        : `the run does not accept "${name}" in ${listed(standingIn(t.value))}: it takes ${accepted(t.accepts, t.events)}.\n${account(t.trace)}`,
    actual: t.accepts,
    expected: name,
  };
}

function accepted(questions: readonly string[], events: readonly string[]): string {
  const own = events.filter((event) => !questions.includes(event));
  const asked = questions.filter((question) => !events.includes(question));
  const sent = questions.filter((question) => events.includes(question));
  const parts = [
    ...(asked.length === 0 ? [] : [`an answer to ${listed(asked)}`]),
    ...(sent.length === 0 ? [] : [`the ${sent.length === 1 ? "event" : "events"} ${listed(sent)}`]),
    ...(own.length === 0 ? [] : [`the ${own.length === 1 ? "event" : "events"} ${listed(own)} of its machine`]),
  ];
  return parts.length === 0 ? "nothing" : parts.join(", and ");
}
