/** The text that a model is writing, as it is after each event. */
import type { ThreadEvent } from "./server-types.ts";

/**
 * Returns the text of the message that is being written after an event: the text so far for a delta, the whole open text
 * for a `snapshot`, and `""` when the message was taken back. The text of a finished message stays until the next one
 * begins. Events of sub-agents are left out.
 *
 * @example
 * let shown = "";
 * for await (const event of thread.stream("support", { input })) {
 *   shown = foldOpenText(shown, event);
 *   element.textContent = shown;
 * }
 */
export function foldOpenText(shown: string, event: ThreadEvent): string {
  if (event["within"] !== undefined) return shown;
  switch (event.type) {
    case "model.started":
    case "message.retracted":
      return "";
    case "message.delta":
      return event["kind"] === "text" ? shown + String(event["text"]) : shown;
    case "snapshot":
      return readOpenText(event["messages"]) ?? shown;
    case "message.completed":
      return readContent(event["message"]) ?? shown;
    default:
      return shown;
  }
}

/** Reads the text of the open messages of a snapshot; undefined without an open message. */
function readOpenText(messages: unknown): string | undefined {
  const texts = listRecords(messages).flatMap(({ text, within }) =>
    typeof text === "string" && within === undefined ? [text] : [],
  );
  return texts.length === 0 ? undefined : texts.join("");
}

/** Reads the text of a message, without its reasoning. */
function readContent(message: unknown): string | undefined {
  const [record] = listRecords([message]);
  const blocks = listRecords(record?.["content"]);
  if (record === undefined) return undefined;
  return blocks.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : [])).join("");
}

function listRecords(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  return items.filter((item): item is Readonly<Record<string, unknown>> => typeof item === "object" && item !== null);
}
