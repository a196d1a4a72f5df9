/**
 * Replies of servers that ignore the request to stream and answer with the whole reply as JSON. The client cannot read
 * that answer as a stream, so that the request is made once more, without streaming.
 */
import { toFields } from "./client-config.ts";
import type { StreamPart } from "./stream-part.ts";

/** Returns true for the headers of a JSON response where a stream of events was requested. */
export function isJsonResponse(headers: unknown): boolean {
  const entries = Object.entries(toFields(headers));
  const contentType = entries.find(([name]) => name.toLowerCase() === "content-type")?.[1];
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(String(contentType));
}

/** Converts the result of `doGenerate` to the parts of a stream. */
export function toStreamParts(result: unknown): readonly StreamPart[] {
  const { content, finishReason, usage, warnings, response, providerMetadata } = toFields(result);
  const { headers: _headers, body: _body, ...metadata } = toFields(response);
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const parts: readonly object[] = [
    { type: "stream-start", warnings: Array.isArray(warnings) ? warnings : [] },
    { type: "response-metadata", ...metadata },
    ...blocks.flatMap((block, index) => toBlockParts(toFields(block), `${index}`)),
    { type: "finish", finishReason, usage, ...(providerMetadata === undefined ? {} : { providerMetadata }) },
  ];
  return parts as readonly StreamPart[];
}

function toBlockParts(block: Readonly<Record<string, unknown>>, id: string): readonly object[] {
  const { type, text, providerMetadata } = block;
  if (type !== "text" && type !== "reasoning") return [block];
  const provider = providerMetadata === undefined ? {} : { providerMetadata };
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, ...provider },
  ];
}
