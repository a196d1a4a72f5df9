/** The text of a run's messages as it comes. What is given and turns out to be void is never followed in silence by another answer. */
import { checkOptions, optionNames } from "../base/options.ts";
import { textOf } from "../model/message.ts";
import type { RunEvent } from "./events.ts";
import { isWithinCall } from "./open-calls.ts";

/** How `text()` speaks of text that was given and is void. */
export interface TextOptions {
  /** What is given in its place, such as the keys that erase it from a terminal. Default: a line that says so. */
  readonly voided?: (text: string) => string;
}

const textOptions = optionNames<TextOptions>({ voided: true });

/** Throws `invalid_option` for an option that there is not. */
export function checkTextOptions(options: TextOptions): void {
  checkOptions("text", options, textOptions);
}

/**
 * The text of each message, save those of agents that tools run: its parts as they come, then what was not streamed of it. Where the parts were not its text, what
 * `voided` gives stands between them and the whole text.
 */
export async function* textsIn(
  events: AsyncIterable<RunEvent>,
  { voided = saidVoid }: TextOptions,
): AsyncGenerator<string, undefined, undefined> {
  /** What was given of the messages that are being written. */
  const given = new Map<string, string>();
  for await (const event of events) {
    if (isWithinCall(event)) continue;
    if (event.type === "message.delta" && event.kind === "text") {
      const place = `${event.withinId ?? ""}/${event.messageId}`;
      given.set(place, (given.get(place) ?? "") + event.text);
      yield event.text;
    } else if (event.type === "message.voided" || event.type === "message.completed") {
      const id = event.type === "message.voided" ? event.messageId : event.message.id;
      const place = `${event.withinId ?? ""}/${id}`;
      const before = given.get(place) ?? "";
      given.delete(place);
      const whole = event.type === "message.voided" ? "" : textOf(event.message);
      if (event.type === "message.completed" && whole.startsWith(before)) {
        if (whole.length > before.length) yield whole.slice(before.length);
        continue;
      }
      // Who began to read in the middle of a message has its end.
      if (event.type === "message.completed" && whole.endsWith(before)) continue;
      const instead = before === "" ? "" : voided(before);
      if (instead !== "") yield instead;
      if (whole !== "") yield whole;
    }
  }
}

function saidVoid(): string {
  return "\n[The answer above broke off and does not count.]\n";
}
