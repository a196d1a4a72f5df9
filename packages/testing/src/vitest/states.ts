/** Matchers for the current state of a run: states, tags and accepted events. */

import { isInState, listActiveStates } from "../node/state-names.ts";
import { explainRun, formatNames } from "../run/explain-run.ts";
import { type MatcherContext, type MatcherResult, requireTestRun } from "./received.ts";

/** Passes when the run is in this state. */
export function toBeInState(this: MatcherContext, received: unknown, state: string): MatcherResult {
  const t = requireTestRun(received, "toBeInState");
  const activeStates = listActiveStates(t.value);
  return {
    pass: isInState(t.value, state),
    message: () =>
      this.isNot
        ? `the run is in "${state}", and should not be.\n${explainRun(t.trace)}`
        : `the run is not in "${state}" but in ${formatNames(activeStates)}.\n${explainRun(t.trace, state)}`,
    actual: activeStates,
    expected: state,
  };
}

/** Passes when an active state of the run has this tag. */
export function toHaveTag(this: MatcherContext, received: unknown, tag: string): MatcherResult {
  const t = requireTestRun(received, "toHaveTag");
  return {
    pass: t.tags.includes(tag),
    message: () =>
      this.isNot
        ? `the run is in ${formatNames(listActiveStates(t.value))}, which has the tag "${tag}", and should not.\n${explainRun(t.trace)}`
        : `the run is in ${formatNames(listActiveStates(t.value))}, which has ${t.tags.length === 0 ? "no tags" : `the ${t.tags.length === 1 ? "tag" : "tags"} ${formatNames(t.tags)}`}, not "${tag}".\n${explainRun(t.trace)}`,
    actual: t.tags,
    expected: tag,
  };
}

/** Passes when the run accepts an answer to this interrupt, or the machine accepts this event. */
export function toAccept(this: MatcherContext, received: unknown, name: string): MatcherResult {
  const t = requireTestRun(received, "toAccept");
  const interrupts = t.interrupts.flatMap(({ id, key }) => [id, key]);
  return {
    pass: interrupts.includes(name) || t.events.includes(name),
    message: () =>
      this.isNot
        ? `the run accepts "${name}", and should not.\n${explainRun(t.trace)}`
        : `the run does not accept "${name}" in ${formatNames(listActiveStates(t.value))}: it accepts ${formatAccepted(t.accepts, t.events)}.\n${explainRun(t.trace)}`,
    actual: t.accepts,
    expected: name,
  };
}

function formatAccepted(interruptKeys: readonly string[], events: readonly string[]): string {
  const machineEvents = events.filter((event) => !interruptKeys.includes(event));
  const answerKeys = interruptKeys.filter((key) => !events.includes(key));
  const sentEvents = interruptKeys.filter((key) => events.includes(key));
  const parts = [
    ...(answerKeys.length === 0 ? [] : [`an answer to ${formatNames(answerKeys)}`]),
    ...(sentEvents.length === 0
      ? []
      : [`the ${sentEvents.length === 1 ? "event" : "events"} ${formatNames(sentEvents)}`]),
    ...(machineEvents.length === 0
      ? []
      : [`the ${machineEvents.length === 1 ? "event" : "events"} ${formatNames(machineEvents)} of its machine`]),
  ];
  return parts.length === 0 ? "nothing" : parts.join(", and ");
}
