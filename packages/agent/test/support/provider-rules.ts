/**
 * Transcript rules of Anthropic, OpenAI and Google, the strictest of each, in addition to those of the scripted model.
 */
import type { Message } from "@statewright/core";

/** Throws unless every provider accepts this conversation. `whole` is its source, which may start with a greeting. */
export function checkRequest(messages: readonly Message[], whole: readonly Message[]): void {
  const said = messages.filter(({ role }) => role !== "system");
  if (said.length === 0) throw new Error("it is empty");
  const greeting = whole.find(({ role }) => role !== "system");
  if (whole.some(({ role }) => role === "user") && said[0]?.role !== "user" && said[0]?.id !== greeting?.id)
    throw new Error(`it begins with the role ${said[0]?.role}`);
  if (said.at(-1)?.role === "assistant") throw new Error("it ends with the model's own words");
  const afterFirst = messages.slice(messages.findIndex(({ role }) => role !== "system"));
  const lastSaid = whole.findLast(({ role }) => role === "user");
  if (lastSaid !== undefined && !messages.some(({ id }) => id === lastSaid.id))
    throw new Error("what a person said last is gone");
  const ids = messages.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) throw new Error("a message stands in it twice");
  if (afterFirst.some(({ content }) => content.length === 0)) throw new Error("a message has no content");
}
